#include "compute/tokenizer/sentencepiece_tokenizer.hpp"

#include "compute/tokenizer/decoder.hpp"
#include "compute/tokenizer/digest.hpp"
#include "compute/tokenizer/model_file.hpp"

#include <sentencepiece_processor.h>

namespace troupe::compute {

namespace {

constexpr std::string_view mark = "\xE2\x96\x81"; // U+2581, a space in a piece

/// What the model's decoder does with leading spaces, asked of the library itself: the settings are
/// not part of its interface.
first_token_rule first_rule(const sentencepiece::SentencePieceProcessor& model) {
  auto decoded = [&](const std::vector<std::string>& pieces) {
    std::string text;
    return model.Decode(pieces, &text).ok() ? text : std::string();
  };
  for (int id = 0; id < model.GetPieceSize(); ++id) {
    const auto& piece = model.IdToPiece(id);
    bool marked = piece.starts_with(mark) && piece.size() > mark.size();
    if (!marked || model.IsControl(id) || model.IsUnknown(id) || model.IsUnused(id))
      continue;
    if (decoded({piece}).starts_with(' '))
      return first_token_rule::same;
    std::string space(mark);
    bool has_space = !model.IsUnknown(model.PieceToId(space));
    return has_space && !decoded({space, piece}).starts_with(' ')
             ? first_token_rule::until_text
             : first_token_rule::until_text_or_mark;
  }
  return first_token_rule::same; // no piece starts with a space
}

error refused(const std::filesystem::path& file, std::string_view what) {
  return {errc::invalid_model, fmt::format("{}: {}", file.string(), what)};
}

} // namespace

sentencepiece_tokenizer::sentencepiece_tokenizer(identity who,
                                                 processor model,
                                                 added_token_matcher added,
                                                 bool legacy)
  : tokenizer(std::move(who)), model_(std::move(model)), added_(std::move(added)), legacy_(legacy) {
}

sentencepiece_tokenizer::~sentencepiece_tokenizer() = default;

result<std::unique_ptr<tokenizer>> sentencepiece_tokenizer::read(const std::filesystem::path& file,
                                                                 const tokenizer_config& config) {
  auto content = read_bytes(file);
  if (!content)
    return content.error();
  auto model = std::make_unique<sentencepiece::SentencePieceProcessor>();
  if (auto status = model->LoadFromSerializedProto(*content); !status.ok())
    return refused(file,
                   fmt::format("{} bytes that sentencepiece does not take as a model: {}",
                               content->size(),
                               status.ToString()));
  identity who;
  auto added = config.added;
  for (int id = 0; id < model->GetPieceSize(); ++id) {
    auto token = static_cast<token_id>(id);
    if (auto done = who.entries.add(token, model->IdToPiece(id)); !done)
      return refused(file, done.error().what);
    if (model->IsControl(id))
      added.push_back({token, model->IdToPiece(id), true, false, false, false, false});
  }
  digester hash;
  hash.add("troupe tokenizer.model 1").add(*content);
  added_token_matcher matcher;
  for (const auto& token : added) {
    if (auto done = who.entries.add(token.id, token.content); !done)
      return refused(file, "added tokens: " + done.error().what);
    if (token.special)
      who.entries.mark_special(token.id);
    matcher.add(token);
    hash.add(token.id).add(token.content).add(token.special).add(token.lstrip).add(token.rstrip);
    hash.add(token.single_word);
  }
  decoder how;
  how.add(decode_byte_fallback{});
  how.add(decode_sentencepiece{std::string(mark)});
  how.rules().first = first_rule(*model);
  how.rules().invalid = utf8::invalid_bytes::one_per_byte;
  if (auto done = who.entries.finish(how); !done)
    return refused(file, done.error().what);
  if (model->unk_id() >= 0)
    who.entries.set_text(static_cast<token_id>(model->unk_id()), " \xE2\x81\x87 "); // its surface
  who.joining = how.rules();
  auto named = [&](const std::optional<std::string>& piece, int id) -> std::optional<token_id> {
    if (piece)
      return who.entries.find(*piece);
    return id < 0 ? std::nullopt : std::optional(static_cast<token_id>(id));
  };
  who.bos = named(config.bos, model->bos_id());
  who.eos = named(config.eos, model->eos_id());
  for (const auto& [piece, id] : {std::pair{config.bos, who.bos}, std::pair{config.eos, who.eos}})
    if (piece && !id)
      return refused(file, fmt::format("tokenizer_config.json names \"{}\", no token", *piece));
  if (who.bos && config.add_bos.value_or(true))
    who.before.push_back(*who.bos);
  if (who.eos && config.add_eos.value_or(false))
    who.after.push_back(*who.eos);
  bool legacy = config.legacy.value_or(true);
  constexpr token_id none = ~token_id{0};
  hash.add(legacy).add(who.bos.value_or(none)).add(who.eos.value_or(none));
  who.digest = hash.add(who.before.size()).add(who.after.size()).value();
  return std::unique_ptr<tokenizer>(
    new sentencepiece_tokenizer(std::move(who), std::move(model), std::move(matcher), legacy));
}

result<void> sentencepiece_tokenizer::encode_text(std::string_view text,
                                                  std::vector<token_id>& out) const {
  for (const auto& part : added_.cut(text)) {
    if (part.token) {
      out.push_back(*part.token);
      continue;
    }
    // As transformers does it: with the unknown piece in front, whose tokens are dropped again, the
    // part is not the start of a text and gets no space.
    bool bare = !legacy_ && part.text.data() != text.data();
    std::string front = bare ? model_->IdToPiece(model_->unk_id()) : std::string();
    std::vector<int> ids, front_ids;
    auto status = model_->Encode(front + std::string(part.text), &ids);
    if (status.ok() && bare)
      status = model_->Encode(front, &front_ids);
    if (!status.ok())
      return error{errc::compute_error,
                   fmt::format("sentencepiece could not encode {} bytes: {}",
                               part.text.size(),
                               status.ToString())};
    for (std::size_t at = front_ids.size(); at < ids.size(); ++at)
      out.push_back(static_cast<token_id>(ids[at]));
  }
  return {};
}

} // namespace troupe::compute
