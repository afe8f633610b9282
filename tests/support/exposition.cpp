#include "tests/support/exposition.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdlib>
#include <regex>
#include <sstream>

namespace troupe::tests {

namespace {

const std::string name_pattern = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const std::string label_pattern = R"([a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*")";

/// Reads lines one after another; every family in one piece, HELP and TYPE first.
class reader {
public:
  void read(const std::string& line) {
    static const std::regex help("# HELP (" + name_pattern + ") (.+)");
    static const std::regex type("# TYPE (" + name_pattern
                                 + ") (counter|gauge|histogram|summary|untyped)");
    static const std::regex sample("(" + name_pattern + R"()(\{(?:)" + label_pattern + "(?:,"
                                   + label_pattern + R"()*)?\})? (\S+))");
    std::smatch found;
    if (std::regex_match(line, found, help))
      begin(found[1]);
    else if (std::regex_match(line, found, type))
      set_type(found[1], found[2]);
    else if (std::regex_match(line, found, sample))
      add(line, found[1], found[2], found[3]);
    else
      complain("no line of the format", line);
  }

  exposition finish() {
    end_family();
    return std::move(made_);
  }

private:
  void complain(const std::string& what, const std::string& where) {
    made_.mistakes.push_back(what + ": " + where);
  }

  void begin(const std::string& name) {
    end_family();
    family_ = name;
    type_.clear();
    if (made_.types.contains(name))
      complain("a family in two pieces", name);
  }

  void set_type(const std::string& name, const std::string& type) {
    if (name != family_ || !type_.empty())
      complain("TYPE is not behind its HELP", name);
    type_ = made_.types[name] = type;
    if ((type == "counter") != name.ends_with("_total"))
      complain("only counters end in _total, and all do", name);
    if (name.ends_with("_ms") || name.ends_with("_ns") || name.ends_with("_milliseconds"))
      complain("no base unit", name);
  }

  void add(const std::string& line,
           const std::string& name,
           const std::string& labels,
           const std::string& value) {
    const bool is_part =
      type_ == "histogram"
      && (name == family_ + "_bucket" || name == family_ + "_sum" || name == family_ + "_count");
    if (name != family_ && !is_part)
      complain("a sample outside of its family " + family_, line);
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (*end != '\0')
      complain("no number", line);
    if (type_ == "counter" && !(number >= 0))
      complain("a counter below 0", line);
    if (!made_.samples.emplace(name + labels, number).second)
      complain("a sample twice", line);
    if (name == family_ + "_bucket")
      buckets_.push_back({labels, number});
  }

  /// Buckets are cumulative, in order, and end with +Inf, which holds all.
  void end_family() {
    if (type_ == "histogram") {
      double last_bound = -INFINITY;
      double last_count = 0;
      for (const auto& [labels, count] : buckets_) {
        const auto text = labels.substr(labels.find("le=\"") + 4);
        const double bound = text.starts_with("+Inf") ? INFINITY : std::stod(text);
        if (bound <= last_bound || count < last_count)
          complain("buckets do not grow", family_ + labels);
        last_bound = bound;
        last_count = count;
      }
      if (!std::isinf(last_bound) || !made_.samples.contains(family_ + "_sum")
          || made_.samples[family_ + "_count"] != last_count)
        complain("+Inf, _sum and _count do not agree", family_);
    }
    buckets_.clear();
  }

  exposition made_;
  std::string family_, type_;
  std::vector<std::pair<std::string, double>> buckets_;
};

} // namespace

double exposition::at(const std::string& sample) const {
  const auto found = samples.find(sample);
  BOOST_REQUIRE_MESSAGE(found != samples.end(), "no sample " << sample);
  return found->second;
}

double exposition::sum(const std::string& name) const {
  double all = 0;
  for (const auto& [sample, value] : samples)
    if (sample == name || sample.starts_with(name + "{"))
      all += value;
  return all;
}

exposition read_exposition(const std::string& text) {
  reader lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.read(line);
  auto made = lines.finish();
  if (!text.ends_with('\n'))
    made.mistakes.emplace_back("the last line does not end");
  return made;
}

} // namespace troupe::tests
