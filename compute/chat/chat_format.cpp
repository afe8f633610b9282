#include "compute/chat/chat_format.hpp"

#include "compute/tokenizer/model_file.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::compute::chat {

namespace {

namespace fs = std::filesystem;

/// A template that is not parsed yet.
struct source {
  std::string name; ///< "default", "tool_use" ...
  std::string text;
  std::string origin; ///< For messages.
};

using sources = std::vector<source>;

bool is_there(const fs::path& file) {
  std::error_code code;
  return fs::exists(file, code);
}

/// A text, or a list of {"name": ..., "template": ...}.
void read_templates(const json_view& found, const std::string& file, sources& out) {
  if (found.empty())
    return;
  if (found.is_string()) {
    out.push_back({"default", found.text(), file});
    return;
  }
  for (std::size_t at = 0; at < found.size(); ++at) {
    auto name = found.at(at)["name"].required_text();
    out.push_back(
      {name, found.at(at)["template"].required_text(), fmt::format("{} ({})", file, name)});
  }
}

result<void> read_jinja_files(const fs::path& folder, sources& out) {
  auto main = folder / "chat_template.jinja";
  if (is_there(main)) {
    auto text = read_bytes(main);
    if (!text)
      return text.error();
    out.push_back({"default", std::move(*text), main.string()});
  }
  std::error_code code;
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(folder / "additional_chat_templates", code))
    if (entry.path().extension() == ".jinja")
      others.push_back(entry.path());
  std::sort(others.begin(), others.end());
  for (const auto& file : others) {
    auto text = read_bytes(file);
    if (!text)
      return text.error();
    out.push_back({file.stem().string(), std::move(*text), file.string()});
  }
  return {};
}

result<void> read_json_file(const fs::path& file, sources& out) {
  if (!out.empty() || !is_there(file))
    return {};
  auto parsed = read_json(file);
  if (!parsed)
    return parsed.error();
  problem trouble(file);
  json_view root(&*parsed, "", trouble);
  read_templates(root["chat_template"], file.string(), out);
  if (trouble)
    return trouble.first();
  return {};
}

/// The special tokens of tokenizer_config.json and special_tokens_map.json under the names that
/// templates use.
result<dictionary> read_constants(const fs::path& folder) {
  dictionary made;
  for (auto name : {"special_tokens_map.json", "tokenizer_config.json"}) { // the latter wins
    if (!is_there(folder / name))
      continue;
    auto parsed = read_json(folder / name);
    if (!parsed)
      return parsed.error();
    problem trouble(folder / name);
    json_view root(&*parsed, "", trouble);
    for (auto key : {"bos_token",
                     "eos_token",
                     "unk_token",
                     "sep_token",
                     "pad_token",
                     "cls_token",
                     "mask_token"}) {
      auto token = root[key];
      if (!token.empty())
        made.set(key, token.is_object() ? token["content"].required_text() : token.required_text());
    }
    if (trouble)
      return trouble.first();
  }
  return made;
}

} // namespace

result<std::unique_ptr<chat_format>> chat_format::open(const fs::path& model_folder) {
  sources found;
  if (auto read = read_jinja_files(model_folder, found); !read)
    return read.error();
  for (auto name : {"chat_template.json", "tokenizer_config.json"})
    if (auto read = read_json_file(model_folder / name, found); !read)
      return read.error();
  if (found.empty())
    return error{errc::not_found,
                 fmt::format("{} has no chat template: no chat_template.jinja, and no "
                             "\"chat_template\" in tokenizer_config.json; it is a base model, "
                             "which completes texts but does not answer messages",
                             model_folder.string())};
  auto format = std::make_unique<chat_format>();
  for (auto& one : found) {
    auto parsed = chat_template::parse(one.text, one.origin);
    if (!parsed)
      return parsed.error();
    format->templates_.push_back({std::move(one.name), std::move(*parsed)});
  }
  auto constants = read_constants(model_folder);
  if (!constants)
    return constants.error();
  format->constants_ = std::move(*constants);
  return format;
}

const chat_template* chat_format::find(std::string_view name) const {
  auto found = std::find_if(
    templates_.begin(), templates_.end(), [&](const auto& one) { return one.name == name; });
  return found == templates_.end() ? nullptr : found->body.get();
}

std::vector<std::string> chat_format::names() const {
  std::vector<std::string> all;
  for (const auto& one : templates_)
    all.push_back(one.name);
  return all;
}

result<std::string> chat_format::render(const value& messages,
                                        const render_options& options) const {
  auto chosen = options.tools.is_none() ? nullptr : find("tool_use");
  if (chosen == nullptr)
    chosen = find("default");
  if (chosen == nullptr)
    return error{errc::unsupported,
                 fmt::format("the model has the chat templates {}, but none is named default",
                             fmt::join(names(), ", "))};
  return chosen->render(messages, options, constants_);
}

result<std::vector<token_id>> encode_prompt(const tokenizer& words, std::string_view text) {
  auto ids = words.encode(text, false);
  if (!ids || !words.bos())
    return ids;
  auto around = words.encode("", true);
  if (!around)
    return around;
  auto start = *words.bos();
  bool adds = std::find(around->begin(), around->end(), start) != around->end();
  auto first_other =
    std::find_if(ids->begin(), ids->end(), [&](token_id id) { return id != start; });
  bool wanted = adds || first_other != ids->begin();
  // Models such as GPT-2's have one token for start and end; where it is not wanted none is there.
  ids->erase(ids->begin(), first_other);
  if (wanted)
    ids->insert(ids->begin(), start);
  return ids;
}

result<std::vector<token_id>> chat_format::prompt(const tokenizer& words,
                                                  const value& messages,
                                                  const render_options& options) const {
  auto text = render(messages, options);
  if (!text)
    return text.error();
  return encode_prompt(words, *text);
}

} // namespace troupe::compute::chat
