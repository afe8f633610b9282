#include "compute/tokenizer/tokenizer_config.hpp"

#include "compute/tokenizer/model_file.hpp"
#include "compute/tokenizer/vocabulary.hpp"

#include <charconv>

namespace troupe::compute {

namespace {

/// "bos_token" is a string or an added token as an object.
std::optional<std::string> token_of(const json_view& value) {
  if (value.empty())
    return std::nullopt;
  return value.is_object() ? value["content"].required_text() : value.required_text();
}

std::optional<bool> flag_of(const json_view& value) {
  if (value.empty())
    return std::nullopt;
  return value.flag(false);
}

void read_added(const json_view& table, tokenizer_config& config) {
  if (table.empty())
    return;
  if (!table.is_object())
    return table.wrong_type("an object of ids");
  for (const auto& [key, value] : table.raw()->items()) {
    json_view entry(&value, fmt::format("{}.{}", table.path(), key), table.trouble());
    added_token token;
    const char* end = key.data() + key.size();
    auto read = std::from_chars(key.data(), end, token.id);
    if (read.ec != std::errc() || read.ptr != end || token.id >= vocabulary::most_tokens)
      return entry.say(
        errc::invalid_model,
        fmt::format("the key is no id; ids are 0 ... {}", vocabulary::most_tokens - 1));
    token.content = entry["content"].required_text();
    token.special = entry["special"].flag(false);
    token.normalized = entry["normalized"].flag(!token.special);
    token.lstrip = entry["lstrip"].flag(false);
    token.rstrip = entry["rstrip"].flag(false);
    token.single_word = entry["single_word"].flag(false);
    config.added.push_back(std::move(token));
  }
}

void read_names(const json_view& root, tokenizer_config& config) {
  for (auto [name, key] : {std::pair{&config.bos, "bos_token"},
                           std::pair{&config.eos, "eos_token"},
                           std::pair{&config.unk, "unk_token"}})
    if (auto token = token_of(root[key]); token && !*name)
      *name = std::move(token);
}

/// Parses the file if it is there and hands its root to `read`.
template <class Read>
result<void> read_optional(const std::filesystem::path& file, Read read) {
  std::error_code code;
  if (!std::filesystem::exists(file, code))
    return {};
  auto parsed = read_json(file);
  if (!parsed)
    return parsed.error();
  problem trouble(file);
  json_view root(&*parsed, "", trouble);
  if (!root.is_object())
    root.wrong_type("an object");
  read(root);
  if (trouble)
    return trouble.first();
  return {};
}

} // namespace

result<tokenizer_config> read_tokenizer_config(const std::filesystem::path& model_folder) {
  tokenizer_config config;
  auto main = read_optional(model_folder / "tokenizer_config.json", [&](const json_view& root) {
    read_added(root["added_tokens_decoder"], config);
    read_names(root, config);
    config.add_bos = flag_of(root["add_bos_token"]);
    config.add_eos = flag_of(root["add_eos_token"]);
    config.legacy = flag_of(root["legacy"]);
    std::string kind = root["tokenizer_class"].text();
    for (auto family :
         {"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "CohereTokenizer"})
      config.flags_win |= kind == family || kind == std::string(family) + "Fast";
  });
  if (!main)
    return main.error();
  auto map = read_optional(model_folder / "special_tokens_map.json",
                           [&](const json_view& root) { read_names(root, config); });
  if (!map)
    return map.error();
  return config;
}

} // namespace troupe::compute
