#include "compute/tokenizer/decoder.hpp"

#include "compute/tokenizer/byte_level.hpp"

#include <charconv>

namespace troupe::compute {

namespace {

std::string replace_all(std::string_view text, std::string_view what, std::string_view with) {
  std::string replaced;
  for (auto at = text.find(what); at != text.npos; at = text.find(what)) {
    replaced.append(text.substr(0, at)).append(with);
    text.remove_prefix(at + what.size());
  }
  return replaced.append(text);
}

struct applied {
  std::string piece;
  bool first;

  result<std::string> operator()(const decode_replace& step) {
    return step.pattern.replace(piece, step.content);
  }

  result<std::string> operator()(const decode_byte_fallback&) {
    if (piece.size() == 6 && piece.starts_with("<0x") && piece.ends_with('>')) {
      unsigned byte = 0;
      const char* end = piece.data() + 5;
      if (std::from_chars(piece.data() + 3, end, byte, 16).ptr == end)
        return std::string(1, static_cast<char>(byte));
    }
    return std::move(piece);
  }

  result<std::string> operator()(const decode_byte_level&) { return byte_level::unspell(piece); }

  result<std::string> operator()(const decode_strip& step) {
    std::string_view rest = piece;
    for (std::size_t count = 0; count < step.start && rest.starts_with(step.content); ++count)
      rest.remove_prefix(step.content.size());
    for (std::size_t count = 0; count < step.stop && rest.ends_with(step.content); ++count)
      rest.remove_suffix(step.content.size());
    return std::string(rest);
  }

  result<std::string> operator()(const decode_metaspace& step) {
    return replace_all(piece, step.mark, first && step.drop_in_first ? "" : " ");
  }

  result<std::string> operator()(const decode_sentencepiece& step) {
    std::string_view rest = piece;
    if (first && rest.starts_with(step.mark))
      rest.remove_prefix(step.mark.size());
    return replace_all(rest, step.mark, " ");
  }
};

} // namespace

result<std::string> decoder::bytes_of(std::string piece, bool first) const {
  for (const auto& step : steps_) {
    auto next = std::visit(applied{std::move(piece), first}, step);
    if (!next)
      return next;
    piece = std::move(*next);
  }
  return piece;
}

} // namespace troupe::compute
