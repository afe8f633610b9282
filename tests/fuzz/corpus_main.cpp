// Runs a fuzz target without libFuzzer: every file of its corpus as it is, then cut, and with bytes
// changed by a fixed seed. What crashes, hangs or trips a sanitizer fails the test.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using bytes = std::vector<std::uint8_t>;

constexpr int changes_a_file = 60;

bytes read(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void run(const bytes& input) {
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

void change(bytes& input, std::mt19937& random) {
  if (input.empty())
    return;
  const auto at = random() % input.size();
  switch (random() % 4) {
  case 0: input[at] = static_cast<std::uint8_t>(random()); break;
  case 1: input[at] ^= static_cast<std::uint8_t>(1u << (random() % 8)); break;
  case 2: input.erase(input.begin() + static_cast<std::ptrdiff_t>(at)); break;
  default: input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), input[at]); break;
  }
}

} // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s CORPUS\n", arguments[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1]))
    files.push_back(entry.path());
  if (files.empty()) {
    std::fprintf(stderr, "%s: no files\n", arguments[1]);
    return 1;
  }
  run({});
  std::mt19937 random(1);
  for (const auto& file : files) {
    const auto whole = read(file);
    run(whole);
    for (int round = 0; round < changes_a_file; ++round) {
      auto input = whole;
      if (round % 6 == 0 && !input.empty())
        input.resize(random() % input.size());
      for (auto left = random() % 4 + 1; left > 0; --left)
        change(input, random);
      run(input);
    }
  }
  std::printf("%zu files, each %d times\n", files.size(), changes_a_file + 1);
  return 0;
}
