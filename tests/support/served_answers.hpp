#pragma once
// Answers of `troupe generate --json` with all that they tell, and what a text is as JSON.

#include "tests/support/cluster.hpp"

#include <string>
#include <vector>

namespace troupe::tests {

struct served_answer {
  struct odds {
    token_id token = 0;
    double logprob = 0;
  };

  std::string text, finish;
  std::vector<token_id> tokens;
  std::vector<double> logprobs;
  std::vector<std::vector<odds>> top;
};

std::vector<served_answer> read_served(const std::vector<std::string>& lines);

/// Runs the requests and ends the test where one fails.
std::vector<served_answer> served(const cluster& where, const std::vector<std::string>& requests);

/// Whether it is JSON: an object with a place of at most 12 characters, units of C, F or null, and
/// at most an integer of days and three spots with a number x.
bool is_weather(const std::string& text);

} // namespace troupe::tests
