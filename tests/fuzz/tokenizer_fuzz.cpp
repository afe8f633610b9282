// A tokenizer.json, from a stranger's model folder: it is read, and encodes and decodes a text.

#include "compute/tokenizer/tokenizer.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstdint>
#include <cstdlib>
#include <fstream>

using namespace troupe::compute;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const troupe::tests::temporary_folder folder;
  {
    std::ofstream file(folder / "tokenizer.json", std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  auto words = tokenizer::open(folder.path());
  if (!words)
    return 0;
  auto ids = (*words)->encode("Hello  w\u00f6rld 123 \u4f60\u597d \U0001f44d\n", true);
  if (!ids)
    return 0;
  for (auto id : *ids)
    if (id >= (*words)->vocabulary_size())
      std::abort();
  if (!(*words)->decode(*ids, false))
    std::abort();
  return 0;
}
