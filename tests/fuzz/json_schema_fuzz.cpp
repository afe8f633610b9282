// A JSON schema, from a client: it is compiled, and its grammar reads bytes.

#include "compute/grammar/byte_automaton.hpp"
#include "compute/grammar/json_schema.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace troupe::compute;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto rules = compile_schema({reinterpret_cast<const char*>(data), size});
  if (!rules)
    return rules.error().what.empty() ? std::abort(), 0 : 0;
  byte_automaton automaton(*rules);
  auto at = automaton.start();
  // Follows the grammar: the first byte from an offset that may come.
  for (std::size_t step = 0; step < 64 && at > byte_automaton::too_many; ++step) {
    auto offset = size > 0 ? data[step % size] : 0;
    auto next = byte_automaton::nowhere;
    for (int byte = 0; byte < 256 && next == byte_automaton::nowhere; ++byte)
      next = automaton.step(at, static_cast<std::uint8_t>(offset + byte));
    if (next == byte_automaton::nowhere && !automaton.accepts(at))
      std::abort(); // a dead end: no text of the grammar goes on
    at = next;
  }
  return 0;
}
