#include "compute/tokenizer/tokenizer.hpp"

#include "compute/tokenizer/json_tokenizer.hpp"
#include "compute/tokenizer/sentencepiece_tokenizer.hpp"
#include "compute/tokenizer/text_stream.hpp"
#include "compute/tokenizer/tokenizer_config.hpp"
#include "compute/tokenizer/utf8.hpp"

#include <fmt/core.h>

namespace troupe::compute {

result<std::unique_ptr<tokenizer>> tokenizer::open(const std::filesystem::path& model_folder) {
  auto config = read_tokenizer_config(model_folder);
  if (!config)
    return config.error();
  std::error_code code;
  auto json = model_folder / "tokenizer.json", model = model_folder / "tokenizer.model";
  if (std::filesystem::exists(json, code))
    return json_tokenizer::read(json, *config);
  if (std::filesystem::exists(model, code))
    return sentencepiece_tokenizer::read(model, *config);
  return error{errc::not_found,
               fmt::format("{} holds no tokenizer; tokenizer.json or tokenizer.model is needed",
                           model_folder.string())};
}

tokenizer::tokenizer(identity who)
  : vocabulary_(std::move(who.entries)), joining_(std::move(who.joining)), bos_(who.bos),
    eos_(who.eos), before_(std::move(who.before)), after_(std::move(who.after)),
    digest_(who.digest) {}

result<std::vector<token_id>> tokenizer::encode(std::string_view utf8, bool add_special) const {
  if (auto at = utf8::first_invalid_byte(utf8))
    return error{errc::invalid_argument,
                 fmt::format("the text is not UTF-8: byte {} of {} is 0x{:02x}, which is not part "
                             "of a character",
                             *at,
                             utf8.size(),
                             static_cast<unsigned char>(utf8[*at]))};
  std::vector<token_id> ids;
  if (add_special)
    ids = before_;
  if (auto done = encode_text(utf8, ids); !done)
    return done.error();
  if (add_special)
    ids.insert(ids.end(), after_.begin(), after_.end());
  return ids;
}

result<std::string> tokenizer::decode(std::span<const token_id> ids, bool skip_special) const {
  text_stream stream(*this, skip_special);
  std::string text;
  for (std::size_t at = 0; at < ids.size(); ++at) {
    if (ids[at] >= vocabulary_size())
      return error{errc::invalid_argument,
                   fmt::format("token {} of {} is {}; the vocabulary ends at {}",
                               at + 1,
                               ids.size(),
                               ids[at],
                               vocabulary_size() - 1)};
    text += stream.push(ids[at]);
  }
  return text += stream.flush();
}

} // namespace troupe::compute
