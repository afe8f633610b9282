#include "compute/end_tokens.hpp"

#include <charconv>
#include <optional>
#include <set>

namespace troupe::compute {
namespace {

/// The file, or nothing where it is absent.
result<std::optional<json_object>> read_optional(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file))
    return std::optional<json_object>();
  auto object = json_object::read(file);
  if (!object)
    return object.error();
  return std::optional(*std::move(object));
}

/// The token's text: plain, or in an object under "content".
std::string end_text(const json_object& tokenizer) {
  for (const auto& [key, text] : tokenizer.text_entries())
    if (key == "eos_token")
      return text;
  return tokenizer.section("eos_token").text_or("content", "");
}

void add_tokenizer_end(const json_object& tokenizer, std::set<token_id>& ends) {
  const auto text = end_text(tokenizer);
  const auto added = tokenizer.section("added_tokens_decoder");
  if (text.empty())
    return;
  for (const auto& key : added.keys()) {
    token_id id = 0;
    const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (code == std::errc{} && end == key.data() + key.size()
        && added.section(key).text_or("content", "") == text)
      ends.insert(id);
  }
}

} // namespace

result<std::vector<token_id>> read_end_tokens(const std::filesystem::path& folder,
                                              const json_object& config) {
  std::set<token_id> ends;
  for (const auto id : config.ids("eos_token_id"))
    ends.insert(id);
  if (config.failure())
    return *config.failure();
  auto generation = read_optional(folder / "generation_config.json");
  if (!generation)
    return generation.error();
  if (*generation) {
    for (const auto id : (*generation)->ids("eos_token_id"))
      ends.insert(id);
    if ((*generation)->failure())
      return *(*generation)->failure();
  }
  auto tokenizer = read_optional(folder / "tokenizer_config.json");
  if (!tokenizer)
    return tokenizer.error();
  if (*tokenizer) {
    add_tokenizer_end(**tokenizer, ends);
    if ((*tokenizer)->failure())
      return *(*tokenizer)->failure();
  }
  return std::vector<token_id>(ends.begin(), ends.end());
}

} // namespace troupe::compute
