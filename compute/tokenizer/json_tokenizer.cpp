#include "compute/tokenizer/json_tokenizer.hpp"

#include "compute/tokenizer/digest.hpp"
#include "compute/tokenizer/tokenizer_steps.hpp"

#include <algorithm>

namespace troupe::compute {

/// Goes through the file once, top to bottom of a tokenizer's work.
class json_tokenizer::reader {
public:
  reader(const json_view& root, const tokenizer_config& config) : root_(root), config_(config) {}

  result<std::unique_ptr<tokenizer>> read() {
    root_.only({"version",
                "truncation",
                "padding",
                "added_tokens",
                "normalizer",
                "pre_tokenizer",
                "post_processor",
                "decoder",
                "model"});
    read_normalizer(root_["normalizer"], steps_.normal);
    read_pre_tokenizer(root_["pre_tokenizer"], steps_.words);
    read_post_processor(root_["post_processor"], who_.before, who_.after);
    read_decoder(root_["decoder"], decoder_);
    read_model(root_["model"]);
    read_added(root_["added_tokens"]);
    if (root_.trouble())
      return root_.trouble().first();
    finish();
    if (root_.trouble())
      return root_.trouble().first();
    return std::unique_ptr<tokenizer>(new json_tokenizer(std::move(who_), std::move(steps_)));
  }

private:
  void read_model(const json_view& model) {
    if (!model.is_object())
      return model.wrong_type("an object");
    if (!model["type"].empty() || model["merges"].empty())
      model["type"].one_of({"BPE"});
    model.only({"type",
                "dropout",
                "unk_token",
                "continuing_subword_prefix",
                "end_of_word_suffix",
                "fuse_unk",
                "byte_fallback",
                "ignore_merges",
                "vocab",
                "merges"});
    if (auto dropout = model["dropout"]; !dropout.empty() && *dropout.raw() != 0)
      dropout.say(errc::unsupported, "a tokenizer that drops merges at random is for training");
    if (auto unk = model["unk_token"]; !unk.empty())
      bpe_.unk_token = unk.text();
    bpe_.continuing_subword_prefix = model["continuing_subword_prefix"].text();
    bpe_.end_of_word_suffix = model["end_of_word_suffix"].text();
    bpe_.fuse_unk = model["fuse_unk"].flag(false);
    bpe_.byte_fallback = model["byte_fallback"].flag(false);
    bpe_.ignore_merges = model["ignore_merges"].flag(false);
    read_vocabulary(model["vocab"]);
    read_merges(model["merges"]);
  }

  void read_vocabulary(const json_view& vocab) {
    if (!vocab.is_object() || vocab.raw()->empty())
      return vocab.wrong_type("an object of pieces and ids");
    bpe_.vocabulary.reserve(vocab.raw()->size());
    for (const auto& [piece, id] : vocab.raw()->items()) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocabulary::most_tokens)
        return json_view(&id, fmt::format("model.vocab[\"{}\"]", piece), root_.trouble())
          .wrong_type(fmt::format("an id of 0 ... {}", vocabulary::most_tokens - 1));
      if (auto added = who_.entries.add(id.get<token_id>(), piece); !added)
        return root_.trouble().say("model.vocab", added.error());
      bpe_.vocabulary.emplace(piece, id.get<token_id>());
    }
  }

  /// "a b" or ["a", "b"].
  void read_merges(const json_view& merges) {
    bpe_.merges.reserve(merges.size());
    for (std::size_t at = 0, count = merges.size(); at < count && !root_.trouble(); ++at) {
      const auto& merge = (*merges.raw())[at];
      bool pair =
        merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
      if (pair) {
        bpe_.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
        continue;
      }
      std::string line = merge.is_string() ? merge.get<std::string>() : std::string();
      if (line.starts_with("#version"))
        continue;
      auto space = line.find(' ');
      if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
        return merges.at(at).wrong_type("\"left right\" or [\"left\", \"right\"]");
      bpe_.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
    }
  }

  void read_added(const json_view& list) {
    for (std::size_t at = 0, count = list.size(); at < count; ++at) {
      auto entry = list.at(at);
      entry.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
      if (entry["id"].empty())
        entry["id"].wrong_type("an id");
      auto id = entry["id"].integer(0);
      if (id >= vocabulary::most_tokens)
        return entry["id"].wrong_type(
          fmt::format("an id of 0 ... {}", vocabulary::most_tokens - 1));
      bool special = entry["special"].flag(false);
      added_.push_back({static_cast<token_id>(id),
                        entry["content"].required_text(),
                        special,
                        entry["normalized"].flag(!special),
                        entry["lstrip"].flag(false),
                        entry["rstrip"].flag(false),
                        entry["single_word"].flag(false)});
    }
    for (const auto& token : config_.added) // the config's word is the later one
      override_added(token);
    for (const auto& token : added_)
      check_added(token);
  }

  void override_added(const added_token& token) {
    for (auto& known : added_)
      if (known.content == token.content) {
        if (known.id != token.id)
          root_.trouble().say(errc::invalid_model,
                              "added_tokens",
                              fmt::format("\"{}\" has id {}, but {} in tokenizer_config.json",
                                          token.content,
                                          known.id,
                                          token.id));
        known = token;
        return;
      }
    added_.push_back(token);
  }

  void check_added(const added_token& token) {
    auto known = bpe_.vocabulary.find(token.content);
    if (known != bpe_.vocabulary.end() && known->second != token.id)
      root_.trouble().say(
        errc::invalid_model,
        "added_tokens",
        fmt::format(
          "\"{}\" has id {}, but {} in model.vocab", token.content, token.id, known->second));
    else if (auto added = who_.entries.add(token.id, token.content); !added)
      root_.trouble().say("added_tokens", added.error());
    else if (token.special)
      who_.entries.mark_special(token.id);
  }

  void finish() {
    if (auto done = who_.entries.finish(decoder_); !done)
      return root_.trouble().say("decoder", done.error());
    who_.joining = decoder_.rules();
    who_.bos = name(config_.bos, "bos_token");
    who_.eos = name(config_.eos, "eos_token");
    if (config_.flags_win) {
      wrap(config_.add_bos, who_.bos, who_.before, true);
      wrap(config_.add_eos, who_.eos, who_.after, false);
    }
    for (auto id : {&who_.before, &who_.after})
      for (token_id token : *id)
        if (!who_.entries.holds(token))
          return root_.trouble().say(errc::invalid_model,
                                     "post_processor",
                                     fmt::format("token {} is not in the vocabulary", token));
    match_added();
    who_.digest = digest();
    auto model = bpe::make(std::move(bpe_));
    if (!model)
      return root_.trouble().say("model", model.error());
    steps_.model = std::make_unique<bpe>(std::move(*model));
  }

  /// The id of a token that tokenizer_config.json names; such a token is special.
  std::optional<token_id> name(const std::optional<std::string>& piece, const char* key) {
    if (!piece)
      return std::nullopt;
    auto id = who_.entries.find(*piece);
    if (!id) {
      root_.trouble().say(
        errc::invalid_model,
        key,
        fmt::format("tokenizer_config.json names \"{}\", which is no token", *piece));
      return std::nullopt;
    }
    who_.entries.mark_special(*id);
    bool listed = std::any_of(
      added_.begin(), added_.end(), [&](const added_token& token) { return token.id == *id; });
    if (!listed)
      added_.push_back({*id, *piece, true, false, false, false, false});
    return id;
  }

  /// What the config says explicitly; what it leaves open is the post-processor's.
  static void wrap(std::optional<bool> wanted,
                   std::optional<token_id> token,
                   std::vector<token_id>& around,
                   bool front) {
    if (!wanted || !token)
      return;
    bool there = std::find(around.begin(), around.end(), *token) != around.end();
    if (!*wanted)
      std::erase(around, *token);
    else if (!there)
      around.insert(front ? around.begin() : around.end(), *token);
  }

  void match_added() {
    for (auto token : added_) {
      if (!token.normalized) {
        steps_.raw.add(token);
        continue;
      }
      auto content = steps_.normal.apply(token.content);
      if (!content)
        return root_.trouble().say("added_tokens", content.error());
      if (*content != token.content) { // as HF, whose decoder sees what was looked for
        auto text = decoder_.bytes_of(*content, false);
        if (!text)
          return root_.trouble().say("decoder", text.error());
        who_.entries.set_text(token.id, std::move(*text));
      }
      token.content = std::move(*content);
      steps_.normalized.add(token);
    }
  }

  std::array<std::byte, 16> digest() const {
    digester hash;
    hash.add("troupe tokenizer.json 1").add(who_.entries.size());
    for (token_id id = 0; id < who_.entries.size(); ++id)
      hash.add(who_.entries.piece(id)).add(who_.entries.is_special(id));
    hash.add(bpe_.merges.size());
    for (const auto& [left, right] : bpe_.merges)
      hash.add(left).add(right);
    auto added = added_;
    std::sort(added.begin(), added.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    for (const auto& token : added)
      hash.add(token.id)
        .add(token.content)
        .add(token.special | token.normalized << 1 | token.lstrip << 2 | token.rstrip << 3
             | token.single_word << 4);
    for (const char* key : {"normalizer", "pre_tokenizer", "decoder"})
      hash.add(root_[key].empty() ? "null" : root_[key].raw()->dump());
    hash.add(bpe_.unk_token.value_or("")).add(bpe_.continuing_subword_prefix);
    hash.add(bpe_.end_of_word_suffix);
    hash.add(bpe_.fuse_unk | bpe_.byte_fallback << 1 | bpe_.ignore_merges << 2);
    for (auto around : {&who_.before, &who_.after}) {
      hash.add(around->size());
      for (token_id id : *around)
        hash.add(id);
    }
    constexpr token_id none = ~token_id{0};
    return hash.add(who_.bos.value_or(none)).add(who_.eos.value_or(none)).value();
  }

  json_view root_;
  const tokenizer_config& config_;
  identity who_;
  steps steps_;
  decoder decoder_;
  bpe_settings bpe_;
  std::vector<added_token> added_;
};

json_tokenizer::json_tokenizer(identity who, steps how)
  : tokenizer(std::move(who)), steps_(std::move(how)) {}

result<std::unique_ptr<tokenizer>> json_tokenizer::read(const std::filesystem::path& file,
                                                        const tokenizer_config& config) {
  auto parsed = read_json(file);
  if (!parsed)
    return parsed.error();
  problem trouble(file);
  return reader(json_view(&*parsed, "", trouble), config).read();
}

result<void> json_tokenizer::encode_text(std::string_view text, std::vector<token_id>& out) const {
  for (const auto& part : steps_.raw.cut(text)) {
    if (part.token) {
      out.push_back(*part.token);
      continue;
    }
    auto normal = steps_.normal.apply(std::string(part.text));
    if (!normal)
      return normal.error();
    bool at_start = part.text.data() == text.data();
    for (const auto& inner : steps_.normalized.cut(*normal)) {
      if (inner.token) {
        out.push_back(*inner.token);
        continue;
      }
      bool first = at_start && inner.text.data() == normal->data();
      auto words = steps_.words.apply({std::string(inner.text), first});
      if (!words)
        return words.error();
      for (const auto& word : *words)
        steps_.model->encode(word.text, out);
    }
  }
  return {};
}

} // namespace troupe::compute
