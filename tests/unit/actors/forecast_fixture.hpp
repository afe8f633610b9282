#pragma once
// A described cluster in a few words, for tests of forecasts.

#include "actors/forecast/scenario_cluster.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <string>

namespace troupe::tests {

/// Eight small layers on hosts of one core with round figures: 1 GB/s, 10 Gflop/s, all of it
/// reached, and nothing beside the products.
struct small_scenario {
  std::size_t hosts = 1;
  std::size_t pipeline = 1;
  std::size_t tensor = 1;
  std::size_t streams = 1;
  std::size_t requests = 1;
  std::size_t prompt = 1;
  std::size_t answer = 1;
  std::size_t cores = 1;
  std::size_t ranks = 1; ///< Of a host.
  double layer_us = 0;
  double read = 1;
  double flops = 10;
  double rack_us = 0;
  double rack_gb_per_s = 1e6;
  std::string more = {};

  std::string text() const {
    return fmt::format(
      "[scenario]\nname = \"small\"\n[model]\nlayers = 8\nhidden = 64\nheads = 4\nkv_heads = 2\n"
      "ffn = 128\nvocabulary = 256\nstored = \"f32\"\ncontext = 1024\n"
      "[[host]]\ncount = {}\ncores = {}\nranks = {}\nmemory = \"1GiB\"\nread_gb_per_s = {}\n"
      "gflop_per_s = {}\nread_reached = 1.0\nflops_reached = 1.0\nlayer_us = {}\n"
      "[links]\nprocess_us = 0\nhost_us = 0\nrack_us = {}\nrack_gb_per_s = {}\nsum_us = 0\n"
      "[parallel]\npipeline = {}\ntensor = {}\n"
      "[load]\nstreams = {}\nrequests = {}\nprompt = {}\nanswer = {}\n{}",
      hosts,
      cores,
      ranks,
      read,
      flops,
      layer_us,
      rack_us,
      rack_gb_per_s,
      pipeline,
      tensor,
      streams,
      requests,
      prompt,
      answer,
      more);
  }
};

inline scenario parsed(const std::string& text) {
  auto made = parse_scenario(text, "small.toml");
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
  return *made;
}

inline actors::scenario_forecast forecast_of(const std::string& text) {
  const auto wanted = parsed(text);
  const auto model = actors::model_of(wanted);
  BOOST_REQUIRE_MESSAGE(model, (model ? "" : model.error().what));
  auto made = actors::forecast_scenario(wanted, **model, {});
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
  return *std::move(made);
}

inline actors::scenario_forecast forecast_of(const small_scenario& small) {
  return forecast_of(small.text());
}

} // namespace troupe::tests
