// The header of a safetensors file: whatever is accepted lies inside of the file.

#include "compute/weights/safetensors.hpp"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto header = troupe::compute::parse_safetensors_header(
    {reinterpret_cast<const std::byte*>(data), size}, "fuzz");
  if (!header)
    return 0;
  for (const auto& tensor : *header)
    if (tensor.offset > size || tensor.bytes > size - tensor.offset)
      std::abort();
  return 0;
}
