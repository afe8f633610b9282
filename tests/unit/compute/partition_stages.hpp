#pragma once
// Single stages of a model of six layers, driven call by call.

#include "compute/partition.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::tests {

using namespace compute;

inline constexpr std::size_t hidden = 64;
inline const std::vector<token_id> tokens{5, 6, 7};

inline batch three_rows(std::uint32_t position = 0) {
  return {.sequences = {{.pages = {page_id{0}}, .first_row = 0, .position = position, .count = 3}}};
}

/// One stage of a model of six layers: the first, a middle one or the last.
class one_stage {
public:
  explicit one_stage(range units, const std::shared_ptr<const model>& source) {
    auto made = make_device("cpu", {});
    BOOST_REQUIRE(made);
    where_ = *std::move(made);
    auto loaded = partition::load(source,
                                  {.units = units,
                                   .owns_input = units.begin == 0,
                                   .owns_output = units.end == source->shape().layers},
                                  dtype::f32,
                                  *where_,
                                  solo_,
                                  {});
    BOOST_REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.error().what));
    part = *std::move(loaded);
    auto made_state = part->make_state(4);
    BOOST_REQUIRE(made_state);
    state = *std::move(made_state);
  }

  result<void> begin(const partition_input& input, batch rows = three_rows()) {
    return part->begin(input, std::move(rows), state, 0);
  }

  void begin_well() {
    const auto begun =
      part->record().owns_input ? begin(token_input{tokens}) : begin(hidden_input{make_hidden()});
    BOOST_REQUIRE_MESSAGE(begun, (begun ? "" : begun.error().what));
  }

  void run_units() {
    while (const auto unit = part->next_unit())
      BOOST_REQUIRE(part->forward_unit(*unit));
  }

  partition_output run() {
    begin_well();
    BOOST_REQUIRE(part->enter());
    run_units();
    BOOST_REQUIRE(part->leave());
    auto output = part->finish(part->record().owns_output);
    BOOST_REQUIRE(output);
    return *std::move(output);
  }

  static buffer make_hidden(std::size_t rows = 3) {
    auto memory = buffer::allocate(rows * hidden * sizeof(float));
    BOOST_REQUIRE(memory);
    for (std::size_t i = 0; i < rows * hidden; ++i)
      memory->as<float>()[i] = std::sin(static_cast<float>(i));
    return *memory;
  }

  std::unique_ptr<partition> part;
  partition_state state;

private:
  std::unique_ptr<device> where_;
  solo_collective solo_;
};

struct six_layers {
  tiny_model files{{.layers = 6, .hidden = hidden}};
  std::shared_ptr<const model> source = files.open();
  one_stage first{{0, 2}, source};
  one_stage middle{{2, 5}, source};
  one_stage last{{5, 6}, source};
};

template <class T>
std::string refusal(const result<T>& outcome, errc code = errc::contract_violation) {
  BOOST_REQUIRE(!outcome);
  BOOST_TEST((outcome.error().code == code));
  return outcome.error().what;
}

inline bool says(const std::string& sentence, std::string_view part) {
  BOOST_TEST_MESSAGE(sentence);
  return sentence.find(part) != std::string::npos;
}

} // namespace troupe::tests
