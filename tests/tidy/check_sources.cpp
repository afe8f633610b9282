// check_sources ROOT: prints every broken rule as "path:line: what"; 1 when there is one.
#include "tests/tidy/source_rules.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace {

namespace fs = std::filesystem;

constexpr std::array kinds{
  ".hpp", ".cpp", ".cu", ".cuh", ".txt", ".cmake", ".md", ".py", ".toml", ".in", ".sh"};

bool is_text(const fs::path& file) {
  const auto kind = file.extension().string();
  return kind.empty()
         || std::any_of(kinds.begin(), kinds.end(), [&](auto known) { return kind == known; });
}

/// Not ours to judge: what is built, what git keeps, and recorded data of other projects.
bool is_foreign(const fs::path& entry) {
  const auto name = entry.filename().string();
  return name == "build" || name == "shared" || name.starts_with(".git")
         || name.starts_with("build-") || name == "__pycache__";
}

std::vector<fs::path> texts_below(const fs::path& root) {
  std::vector<fs::path> found;
  for (auto at = fs::recursive_directory_iterator(root); at != fs::end(at); ++at) {
    if (at->is_directory() && is_foreign(at->path()))
      at.disable_recursion_pending();
    else if (at->is_regular_file() && is_text(at->path()) && !is_foreign(at->path()))
      found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: check_sources ROOT\n");
    return 2;
  }
  const fs::path root = argv[1];
  const auto in_tree = [&](const std::string& path) { return fs::is_regular_file(root / path); };
  const auto files = texts_below(root);
  int broken = 0;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto path = file.lexically_relative(root).generic_string();
    for (const auto& found : troupe::tidy::check({path, text}, in_tree)) {
      std::printf("%s:%zu: %s\n", path.c_str(), found.line, found.what.c_str());
      ++broken;
    }
  }
  std::printf("%zu files, %d findings\n", files.size(), broken);
  return broken == 0 && files.size() > 100 ? 0 : 1; // a wrong root must not pass
}
