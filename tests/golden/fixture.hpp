#pragma once
// A model fixture with what the reference implementation says about it
// (tests/golden/make_model_fixtures.py).

#include "compute/model.hpp"
#include "config/ids.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::tests {

struct fixture {
  std::string name;
  std::shared_ptr<const compute::model> model = {};
  std::vector<token_id> prompt = {};
  std::vector<token_id> ids = {}; ///< The greedy continuation.
  std::vector<std::vector<float>> prompt_logits = {};
  std::vector<std::size_t> steps = {}; ///< Decoding steps whose logits follow.
  std::vector<std::vector<float>> step_logits = {};
};

/// Names of all fixtures, sorted; there is at least one (check).
std::vector<std::string> fixture_names();

/// Reads one; ends the test when that fails.
fixture read_fixture(const std::string& name);

/// Largest difference of two rows, relative to the largest magnitude in the second.
float relative_error(const std::vector<float>& found, const std::vector<float>& expected);

} // namespace troupe::tests
