#include "config/settings_reference.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

constexpr std::string_view introduction = R"(# The cluster file

<!-- Made from config/settings_table.cpp: cmake --build BUILD --target configuration_page -->

A cluster file says which model runs, how it is split, and on which nodes. It is
[TOML](https://toml.io/en/v1.0.0), at most 256 KiB of UTF-8. The smallest one:

```toml
[model]
path = "demo"

[[node]]
name = "a"
```

`config/examples/` has more, from one process to hosts with RDMA. `troupe config FILE` prints the
effective value of every key and where it came from.

- The reader is strict. An unknown key, a wrong type, a value out of range or a sum that cannot work
  is an error with file, line, source text and caret, before anything is started. Up to ten mistakes
  are told at once.
- Relative paths start at the folder of the file.
- `--set key=value` on the command line overrides the file: `--set model.context=4096`,
  `--set node.a.threads=2`, `--set node[0].threads=2`. A value that is not TOML is a string, so
  `--set state.memory=2GiB` needs no quotes. Relative paths then start at the working directory.
- Sizes are `"512MiB"`, `"2GiB"`, `"4GB"` or a number of bytes. Keys that end in `_ms` are
  milliseconds.
- All nodes read the same file, or files that agree. Ranks are numbered stage by stage: with
  `pipeline = 2` and `tensor = 2`, ranks 0 and 1 are the first stage. Nodes take consecutive ranks
  in the order of the file.
)";

std::string default_of(const setting& key) {
  if (key.required)
    return "required";
  const auto text = write_setting(key);
  return text == "\"\"" ? "absent" : fmt::format("`{}`", text);
}

} // namespace

std::string section_reference(const setting_section& section) {
  auto text = fmt::format("\n## {}\n\n{}\n\n", header_of(section.name), section.about);
  text += "| Key | Accepts | Default | What and why |\n|---|---|---|---|\n";
  for (const auto& key : section.settings)
    text += fmt::format(
      "| `{}` | {} | {} | {} |\n", key.name, accepted(key), default_of(key), key.reason);
  return text;
}

std::string settings_reference() {
  cluster_settings example;
  example.nodes.resize(1);
  example.faults.resize(1);
  std::string page{introduction};
  for (const auto& section : sections_of(example))
    page += section_reference(section);
  return page;
}

} // namespace troupe
