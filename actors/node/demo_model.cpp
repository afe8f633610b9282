#include "actors/node/demo_model.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace fs = std::filesystem;

result<fs::path> demo_model_folder() {
  std::error_code ignored;
  const auto program = fs::read_symlink("/proc/self/exe", ignored);
  const auto installed = program.parent_path().parent_path() / "share/troupe/demo";
  const fs::path built = TROUPE_DEMO_MODEL_FOLDER; // Set by CMake.
  for (const auto& folder : {installed, built}) {
    if (fs::exists(folder / "config.json", ignored))
      return folder;
  }
  return error{
    errc::not_found,
    fmt::format("the demo's model is neither in {} nor in {}; reinstall, or name a model "
                "with --set model.path=FOLDER",
                installed.string(),
                built.string())};
}

result<fs::path> model_folder_of(const cluster_settings& settings, const node_settings& node) {
  const auto& folder = settings.model_path_of(node);
  if (folder == "demo")
    return demo_model_folder();
  return folder;
}

} // namespace troupe::actors
