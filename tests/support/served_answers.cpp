#include "tests/support/served_answers.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::tests {

using nlohmann::json;

std::vector<served_answer> read_served(const std::vector<std::string>& lines) {
  std::vector<served_answer> made;
  for (const auto& line : lines) {
    const auto object = json::parse(line, nullptr, false);
    if (!object.is_object() || !object.contains("index"))
      continue;
    auto& one = made.emplace_back();
    one.text = object.value("text", "");
    one.finish = object.value("finish", "");
    one.tokens = object.value("tokens", std::vector<token_id>{});
    one.logprobs = object.value("logprobs", std::vector<double>{});
    for (const auto& place : object.value("top_logprobs", json::array())) {
      auto& told = one.top.emplace_back();
      for (const auto& entry : place)
        told.push_back({entry.at("token").get<token_id>(), entry.at("logprob").get<double>()});
    }
  }
  return made;
}

std::vector<served_answer> served(const cluster& where, const std::vector<std::string>& requests) {
  const auto ran = where.try_generate(requests);
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.all());
  auto made = read_served(ran.lines);
  BOOST_REQUIRE_MESSAGE(made.size() == requests.size(), ran.all());
  return made;
}

bool is_weather(const std::string& text) {
  const auto value = json::parse(text, nullptr, false);
  if (!value.is_object() || !value.contains("place") || !value.contains("units"))
    return false;
  for (const auto& [key, content] : value.items()) {
    if (key == "place") {
      const auto place = content.is_string() ? content.get<std::string>() : std::string(99, 'x');
      if (std::count_if(place.begin(), place.end(), [](char c) { return (c & 0xC0) != 0x80; }) > 12)
        return false;
    } else if (key == "units") {
      if (content != "C" && content != "F" && !content.is_null())
        return false;
    } else if (key == "days") {
      if (!content.is_number_integer())
        return false;
    } else if (key == "spots") {
      if (!content.is_array() || content.size() > 3)
        return false;
      for (const auto& spot : content)
        if (!spot.is_object() || spot.size() != 1 || !spot.contains("x") || !spot["x"].is_number())
          return false;
    } else {
      return false;
    }
  }
  return true;
}

} // namespace troupe::tests
