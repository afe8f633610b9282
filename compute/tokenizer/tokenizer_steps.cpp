#include "compute/tokenizer/tokenizer_steps.hpp"

#include "compute/tokenizer/vocabulary.hpp"

namespace troupe::compute {

namespace {

void read_normalizer_step(const json_view& step, normalizer& out) {
  using enum unicode_form::kind;
  switch (step["type"].one_of(
    {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "Replace", "Prepend"})) {
  case 0: return out.add(unicode_form{nfc});
  case 1: return out.add(unicode_form{nfd});
  case 2: return out.add(unicode_form{nfkc});
  case 3: return out.add(unicode_form{nfkd});
  case 4: return out.add(lowercase{});
  case 5:
    step.only({"type", "strip_left", "strip_right"});
    return out.add(strip_whitespace{step["strip_left"].flag(true), step["strip_right"].flag(true)});
  case 6:
    step.only({"type", "pattern", "content"});
    if (auto pattern = read_pattern(step["pattern"]))
      out.add(replace_matches{std::move(*pattern), step["content"].required_text()});
    return;
  default:
    step.only({"type", "prepend"});
    return out.add(prepend_text{step["prepend"].required_text()});
  }
}

split_behavior read_behavior(const json_view& value, split_behavior fallback) {
  if (value.empty())
    return fallback;
  constexpr split_behavior order[] = {split_behavior::removed,
                                      split_behavior::isolated,
                                      split_behavior::merged_with_previous,
                                      split_behavior::merged_with_next,
                                      split_behavior::contiguous};
  return order[value.one_of(
    {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"})];
}

/// The one character of "replacement" or "content".
std::string read_character(const json_view& value) {
  std::string text = value.required_text();
  if (text.empty() || text.size() != utf8::length(text[0]))
    value.say(errc::invalid_model, fmt::format("\"{}\" is not one character", text));
  return text;
}

/// Old files say add_prefix_space, newer ones prepend_scheme, some both.
metaspace_words read_metaspace(const json_view& step) {
  step.only({"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
  using enum metaspace_words::prepend;
  metaspace_words made;
  made.mark = read_character(step["replacement"]);
  made.split = step["split"].flag(true);
  bool prefix = step["add_prefix_space"].flag(true);
  made.scheme = prefix ? always : never;
  if (auto scheme = step["prepend_scheme"]; !scheme.empty()) {
    constexpr metaspace_words::prepend order[] = {always, first, never};
    made.scheme = order[scheme.one_of({"always", "first", "never"})];
    if (!prefix && made.scheme != never)
      scheme.say(errc::invalid_model, "it contradicts add_prefix_space = false");
  }
  return made;
}

void read_byte_level(const json_view& step, pre_tokenizer& out) {
  step.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  byte_level_words made{step["add_prefix_space"].flag(true), {}};
  if (step["use_regex"].flag(true)) {
    auto pattern = gpt2_pattern();
    check(pattern.has_value(), "GPT-2's pattern compiles");
    made.pattern.push_back(std::move(*pattern));
  }
  out.add(std::move(made));
}

void read_pre_tokenizer_step(const json_view& step, pre_tokenizer& out) {
  using enum split_by_class::kind;
  switch (step["type"].one_of({"ByteLevel",
                               "Split",
                               "Digits",
                               "Punctuation",
                               "Whitespace",
                               "WhitespaceSplit",
                               "Metaspace"})) {
  case 0: return read_byte_level(step, out);
  case 1:
    step.only({"type", "pattern", "behavior", "invert"});
    if (auto pattern = read_pattern(step["pattern"]))
      out.add(split_by_pattern{std::move(*pattern),
                               read_behavior(step["behavior"], split_behavior::isolated),
                               step["invert"].flag(false)});
    return;
  case 2:
    step.only({"type", "individual_digits"});
    return out.add(split_by_class{digits,
                                  step["individual_digits"].flag(false)
                                    ? split_behavior::isolated
                                    : split_behavior::contiguous});
  case 3:
    step.only({"type", "behavior"});
    return out.add(
      split_by_class{punctuation, read_behavior(step["behavior"], split_behavior::isolated)});
  case 4: return out.add(split_words{});
  case 5: return out.add(split_by_class{whitespace, split_behavior::removed});
  default: return out.add(read_metaspace(step));
  }
}

/// Adds the ids of one special token of a template.
void read_template_token(const json_view& step, const json_view& name, std::vector<token_id>& out) {
  std::string key = name.required_text();
  auto ids = step["special_tokens"][key.c_str()]["ids"];
  if (ids.empty())
    name.say(errc::invalid_model,
             fmt::format("\"{}\" is not in {}.special_tokens", key, step.path()));
  for (std::size_t at = 0, count = ids.size(); at < count; ++at) {
    auto id = ids.at(at).integer(0);
    if (id >= vocabulary::most_tokens)
      ids.at(at).say(errc::invalid_model,
                     fmt::format("id {} is not below {}", id, vocabulary::most_tokens));
    out.push_back(static_cast<token_id>(id));
  }
}

void read_template(const json_view& step,
                   std::vector<token_id>& before,
                   std::vector<token_id>& after) {
  step.only({"type", "single", "pair", "special_tokens"});
  std::vector<token_id> front, back;
  std::size_t texts = 0;
  auto single = step["single"];
  for (std::size_t at = 0, count = single.size(); at < count; ++at) {
    auto part = single.at(at);
    part.only({"SpecialToken", "Sequence"});
    if (auto token = part["SpecialToken"]; !token.empty())
      read_template_token(step, token["id"], texts == 0 ? front : back);
    else if (auto text = part["Sequence"]; text["id"].required_text() == "A")
      ++texts;
  }
  if (texts != 1)
    single.say(errc::unsupported,
               fmt::format("the text (Sequence A) is there {} times; supported is once", texts));
  before.insert(before.begin(), front.begin(), front.end());
  after.insert(after.end(), back.begin(), back.end());
}

/// Reads the steps of a decoder and watches their order.
class decoder_reader {
public:
  explicit decoder_reader(decoder& out) : out_(out) {}

  void read(const json_view& step) {
    switch (
      step["type"].one_of({"ByteLevel", "ByteFallback", "Fuse", "Replace", "Strip", "Metaspace"})) {
    case 0:
      add_last(step, decode_byte_level{});
      fused_ = true;
      return;
    case 1:
      out_.rules().invalid = utf8::invalid_bytes::one_per_byte;
      return add_last(step, decode_byte_fallback{});
    case 2: fused_ = closed_ = true; return;
    case 3:
      step.only({"type", "pattern", "content"});
      if (auto pattern = read_pattern(step["pattern"]))
        add(step, decode_replace{std::move(*pattern), step["content"].required_text()});
      return;
    case 4: return read_strip(step);
    default: {
      auto words = read_metaspace(step);
      bool drop = words.scheme != metaspace_words::prepend::never;
      if (drop)
        out_.rules().first = first_token_rule::one_token;
      return add(step, decode_metaspace{words.mark, drop});
    }
    }
  }

private:
  void add(const json_view& step, decoder_step made) {
    if (closed_)
      step.say(
        errc::unsupported,
        "it comes after ByteLevel, ByteFallback or Fuse; supported there are Fuse, and Strip "
        "with stop = 0 after Fuse");
    out_.add(std::move(made));
  }

  void add_last(const json_view& step, decoder_step made) {
    add(step, std::move(made));
    closed_ = true;
  }

  void read_strip(const json_view& step) {
    step.only({"type", "content", "start", "stop"});
    decode_strip made{read_character(step["content"]),
                      static_cast<std::size_t>(step["start"].integer(0)),
                      static_cast<std::size_t>(step["stop"].integer(0))};
    if (!fused_)
      return add(step, std::move(made));
    if (made.stop != 0 || out_.rules().strip_count != 0)
      return step.say(errc::unsupported,
                      "after Fuse one Strip with stop = 0 is supported: text is sent while it is "
                      "made");
    out_.rules().strip_content = made.content;
    out_.rules().strip_count = made.start;
  }

  decoder& out_;
  bool closed_ = false; ///< Pieces are bytes by now, or one text.
  bool fused_ = false;
};

} // namespace

std::optional<split_pattern> read_pattern(const json_view& value) {
  value.only({"String", "Regex"});
  bool regex = !value["Regex"].empty();
  auto text = value[regex ? "Regex" : "String"];
  std::string spelled = text.required_text();
  if (value.trouble())
    return std::nullopt;
  auto made = regex ? split_pattern::regex(spelled) : split_pattern::literal(spelled);
  if (!made) {
    value.trouble().say(text.path(), made.error());
    return std::nullopt;
  }
  return std::move(*made);
}

void read_normalizer(const json_view& value, normalizer& out) {
  for_each_step(
    value, "normalizers", [&](const json_view& step) { read_normalizer_step(step, out); });
}

void read_pre_tokenizer(const json_view& value, pre_tokenizer& out) {
  for_each_step(
    value, "pretokenizers", [&](const json_view& step) { read_pre_tokenizer_step(step, out); });
}

void read_post_processor(const json_view& value,
                         std::vector<token_id>& before,
                         std::vector<token_id>& after) {
  for_each_step(value, "processors", [&](const json_view& step) {
    // ByteLevel only moves offsets, which Troupe does not keep.
    if (step["type"].one_of({"ByteLevel", "TemplateProcessing"}) == 1)
      read_template(step, before, after);
  });
}

void read_decoder(const json_view& value, decoder& out) {
  if (value.empty()) {
    out.rules().separator = std::string(1, ' ');
    return;
  }
  decoder_reader reader(out);
  for_each_step(value, "decoders", [&](const json_view& step) { reader.read(step); });
}

} // namespace troupe::compute
