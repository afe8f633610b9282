// Files that are damaged, hostile, or say what Troupe does not know: an error that names the file
// and the key, never a crash and never a tokenizer that is silently another one.

#include "compute/tokenizer/tokenizer.hpp"
#include "tests/paths.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <fstream>
#include <random>

using namespace troupe;
using namespace troupe::compute;
using nlohmann::json;

namespace {

const std::filesystem::path golden = TROUPE_SOURCE_DIR "/tests/golden/tokenizer";

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  BOOST_REQUIRE(stream);
  return {std::istreambuf_iterator<char>(stream), {}};
}

json golden_json(const std::string& name) {
  return json::parse(bytes_of(golden / name / "tokenizer.json"));
}

/// A model folder of its own for each test.
struct folder {
  std::filesystem::path path =
    std::filesystem::path(TROUPE_BINARY_DIR) / "tests" / "tokenizer_files"
    / std::string(boost::unit_test::framework::current_test_case().p_name);

  folder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }

  ~folder() { std::filesystem::remove_all(path); }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path / name, std::ios::binary) << content;
  }

  result<std::unique_ptr<tokenizer>> open(const json& content) const {
    write("tokenizer.json", content.dump());
    return tokenizer::open(path);
  }
};

/// The error has this code and its message names the file and all `parts`.
void refuses(const result<std::unique_ptr<tokenizer>>& opened,
             errc code,
             std::initializer_list<std::string_view> parts,
             std::string_view file = "tokenizer.json") {
  BOOST_REQUIRE(!opened);
  const auto& what = opened.error().what;
  BOOST_TEST((opened.error().code == code), what << " is " << to_string(opened.error().code));
  BOOST_TEST(what.find(file) != std::string::npos, what << " names " << file);
  for (auto part : parts)
    BOOST_TEST(what.find(part) != std::string::npos, what << " names " << part);
}

std::vector<token_id> ids(const tokenizer& subject, std::string_view text) {
  auto encoded = subject.encode(text, false);
  BOOST_REQUIRE(encoded);
  return *encoded;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_folder_without_a_tokenizer_names_both_files) {
  folder empty;
  refuses(tokenizer::open(empty.path), errc::not_found, {"tokenizer.model", empty.path.string()});
}

BOOST_AUTO_TEST_CASE(C01_a_bpe_without_merges_is_an_error) {
  folder given;
  for (const char* name : {"gpt2_pairs", "llama2_old", "llama3"}) {
    auto content = golden_json(name);
    content["model"]["merges"] = json::array();
    refuses(given.open(content), errc::invalid_model, {"model.merges is empty", "vocab"});
    content["model"].erase("merges");
    refuses(given.open(content), errc::invalid_model, {"model.merges is empty"});
  }
}

BOOST_AUTO_TEST_CASE(C01_a_vocabulary_of_bytes_alone_needs_no_merges) {
  folder given;
  auto content = golden_json("gpt2_pairs");
  auto& vocab = content["model"]["vocab"];
  auto all = vocab;
  vocab = json::object();
  for (const auto& [piece, id] : all.items())
    if (id.get<int>() >= 1 && id.get<int>() <= 256)
      vocab[piece] = id;
  content["model"]["merges"] = json::array();
  auto opened = given.open(content);
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().what));
  BOOST_TEST(ids(**opened, "a\xF0\x9F\x8E\x89").size() == 5u);
}

BOOST_AUTO_TEST_CASE(B17_an_added_token_beyond_the_vocabulary_counts) {
  folder given;
  auto content = golden_json("llama3");
  auto& added = content["added_tokens"];
  auto known = tokenizer::open(golden / "llama3");
  BOOST_REQUIRE(known);
  auto end = static_cast<token_id>((*known)->vocabulary_size());
  auto far = added.back();
  far["id"] = end + 3;
  far["content"] = "<far>";
  added.push_back(far);
  auto opened = given.open(content);
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().what));
  BOOST_TEST((*opened)->vocabulary_size() == end + 4);
  BOOST_TEST(ids(**opened, "<far>") == std::vector<token_id>{end + 3},
             boost::test_tools::per_element());
  BOOST_TEST(*(*opened)->decode(std::vector{end + 3}, false) == "<far>");
  BOOST_TEST(*(*opened)->decode(std::vector{end + 1}, false) == ""); // a hole
  BOOST_TEST((*opened)->piece(end + 1) == "");
  BOOST_TEST(!(*opened)->decode(std::vector{end + 4}, false));
  BOOST_TEST(((*opened)->digest() != (*known)->digest()));
}

BOOST_AUTO_TEST_CASE(B17_tokens_of_tokenizer_config_alone_count_too) {
  folder given;
  auto known = tokenizer::open(golden / "llama3");
  auto end = static_cast<token_id>((*known)->vocabulary_size());
  given.write("tokenizer_config.json",
              json{{"added_tokens_decoder",
                    {{std::to_string(end + 3), {{"content", "<far>"}, {"special", true}}}}}}
                .dump());
  auto opened = given.open(golden_json("llama3"));
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().what));
  BOOST_TEST((*opened)->vocabulary_size() == end + 4);
  BOOST_TEST((*opened)->is_special(end + 3));
}

BOOST_AUTO_TEST_CASE(a_truncated_file_is_not_json_at_any_length) {
  folder given;
  auto whole = bytes_of(golden / "llama3" / "tokenizer.json");
  for (std::size_t bytes = 0; bytes < whole.size() - 2; bytes += 1 + bytes / 3) {
    given.write("tokenizer.json", whole.substr(0, bytes));
    refuses(tokenizer::open(given.path), errc::invalid_model, {"is not JSON"});
  }
}

BOOST_AUTO_TEST_CASE(nesting_without_end_is_refused_before_it_is_parsed) {
  folder given;
  given.write("tokenizer.json", std::string(1000000, '['));
  refuses(tokenizer::open(given.path), errc::invalid_model, {"nested 1000000 deep", "64"});
  json steps = {{"type", "NFC"}};
  for (int depth = 0; depth < 20; ++depth)
    steps = {{"type", "Sequence"}, {"normalizers", json::array({steps})}};
  auto content = golden_json("qwen2");
  content["normalizer"] = steps;
  refuses(given.open(content), errc::unsupported, {"8 deep"});
}

BOOST_AUTO_TEST_CASE(a_wrong_type_is_named_with_its_key_wherever_it_is) {
  folder given;
  auto content = golden_json("llama3");
  std::size_t tried = 0;
  // Every value outside of the long lists becomes a value of another type.
  auto values = content.flatten();
  for (const auto& [where, value] : values.items()) {
    bool listed = where.starts_with("/model/vocab/") || where.starts_with("/model/merges/")
                  || where == "/version" || where.starts_with("/post_processor/processors/1/pair")
                  || where.find("trim_offsets") != std::string::npos
                  || where.find("type_id") != std::string::npos
                  || where.find("/tokens/") != std::string::npos || value.is_null()
                  || where.starts_with("/post_processor/processors/0/")
                  || where.find("decoder/") != std::string::npos
                  || where.find("special_tokens/<|begin_of_text|>/id") != std::string::npos;
    if (listed)
      continue;
    auto broken = content;
    broken[json::json_pointer(where)] = json::array({json::object(), -1.5});
    auto opened = given.open(broken);
    BOOST_TEST(!opened, where << " is checked");
    if (!opened)
      BOOST_TEST(opened.error().what.find("tokenizer.json: ") != std::string::npos);
    ++tried;
  }
  BOOST_TEST(tried > 40u);
}

BOOST_AUTO_TEST_CASE(ids_that_are_no_ids) {
  folder given;
  auto content = golden_json("gpt2_pairs");
  for (json id : {json(4294967295u), json(1e30), json(-1), json("7"), json(3.5), json(nullptr)}) {
    auto broken = content;
    broken["model"]["vocab"]["a"] = id;
    refuses(given.open(broken), errc::invalid_model, {"model.vocab[\"a\"]", "0 ... 4194303"});
    broken = content;
    broken["added_tokens"][0]["id"] = id;
    refuses(given.open(broken), errc::invalid_model, {"added_tokens[0]"});
  }
  given.write("tokenizer.json", content.dump());
  given.write("tokenizer_config.json",
              R"({"added_tokens_decoder": {"99999999999999999999": {"content": "x"}}})");
  refuses(tokenizer::open(given.path),
          errc::invalid_model,
          {"added_tokens_decoder.99999999999999999999"},
          "tokenizer_config.json");
}

BOOST_AUTO_TEST_CASE(ids_and_pieces_that_contradict_each_other) {
  folder given;
  auto content = golden_json("llama3");
  auto broken = content;
  broken["model"]["vocab"]["zzz"] = 5;
  refuses(given.open(broken), errc::invalid_model, {"id 5 belongs to two tokens", "zzz"});
  broken = content;
  broken["added_tokens"][0]["id"] = 5;
  refuses(given.open(broken), errc::invalid_model, {"id 5 belongs to two tokens"});
  broken = content;
  broken["added_tokens"][0]["content"] = "a"; // of the vocabulary, under another id
  refuses(given.open(broken), errc::invalid_model, {"added_tokens", "\"a\" has id"});
  given.write("tokenizer_config.json",
              R"({"added_tokens_decoder": {"3": {"content": "<|eot_id|>"}}})");
  refuses(given.open(content), errc::invalid_model, {"\"<|eot_id|>\" has id", "but 3"});
  given.write("tokenizer_config.json", R"({"eos_token": "<nowhere>"})");
  refuses(given.open(content), errc::invalid_model, {"eos_token", "<nowhere>"});
}

BOOST_AUTO_TEST_CASE(merges_that_name_what_is_not_there) {
  folder given;
  auto content = golden_json("gpt2_pairs");
  for (auto [merge, named] : {std::pair<json, std::string>{{"zz", "a"}, "does not hold \"zz\""},
                              {{"a", "zz"}, "does not hold \"zz\""},
                              {{"q", "q"}, "does not hold \"qq\""},
                              {"one", "left right"},
                              {"a b c", "left right"},
                              {json::array({"a"}), "left right"},
                              {json::array({"a", 7}), "left right"},
                              {7, "left right"}}) {
    auto broken = content;
    broken["model"]["merges"][3] = merge;
    refuses(given.open(broken), errc::invalid_model, {"model", "merges[3]", named});
  }
  content["model"]["unk_token"] = "<gone>";
  refuses(given.open(content), errc::invalid_model, {"unk_token", "<gone>"});
}

BOOST_AUTO_TEST_CASE(what_is_not_known_is_named_with_what_is) {
  folder given;
  auto content = golden_json("llama3");
  auto with = [&](const char* pointer, json value) {
    auto changed = content;
    changed[json::json_pointer(pointer)] = std::move(value);
    return given.open(changed);
  };
  for (const char* type : {"Unigram", "WordPiece", "WordLevel"})
    refuses(with("/model/type", type), errc::unsupported, {"model.type", type, "BPE"});
  refuses(with("/model/dropout", 0.1), errc::unsupported, {"model.dropout", "random"});
  refuses(with("/model/novelty", 1), errc::unsupported, {"model", "novelty", "ignore_merges"});
  refuses(with("/novelty", 1), errc::unsupported, {"novelty", "pre_tokenizer"});
  refuses(with("/normalizer", {{"type", "Precompiled"}}),
          errc::unsupported,
          {"normalizer.type", "Precompiled", "NFKC"});
  refuses(with("/pre_tokenizer", {{"type", "UnicodeScripts"}}),
          errc::unsupported,
          {"pre_tokenizer.type", "UnicodeScripts", "Metaspace"});
  refuses(with("/pre_tokenizer/pretokenizers/0/behavior", "Sideways"),
          errc::unsupported,
          {"pre_tokenizer.pretokenizers[0].behavior", "Sideways", "MergedWithNext"});
  refuses(with("/decoder", {{"type", "WordPiece"}}), errc::unsupported, {"decoder.type", "Fuse"});
  refuses(with("/post_processor", {{"type", "BertProcessing"}}),
          errc::unsupported,
          {"post_processor.type", "TemplateProcessing"});
  refuses(with("/pre_tokenizer/pretokenizers/0/pattern", {{"Regex", "(unclosed"}}),
          errc::invalid_model,
          {"pre_tokenizer.pretokenizers[0].pattern.Regex", "(unclosed", "byte 9"});
  refuses(with("/pre_tokenizer/pretokenizers/0/pattern", {{"Regex", "[a-z&&[^b]]"}}),
          errc::invalid_model,
          {"&& are not supported"});
  refuses(with("/pre_tokenizer/pretokenizers/0/pattern", {{"String", ""}}),
          errc::invalid_model,
          {"pattern.String", "empty"});
  json strip = {{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}};
  refuses(with("/decoder",
               {{"type", "Sequence"}, {"decoders", json::array({{{"type", "Fuse"}}, strip})}}),
          errc::unsupported,
          {"decoder.decoders[1]", "stop = 0"});
  refuses(with("/post_processor/processors/1/single", json::array()),
          errc::unsupported,
          {"Sequence A", "0 times"});
}

BOOST_AUTO_TEST_CASE(add_bos_token_wins_over_the_post_processor_for_llamas_classes_alone) {
  folder given;
  auto content = golden_json("llama3");
  auto added = [&](const char* kind, const char* flags) {
    json config = {{"bos_token", "<|begin_of_text|>"}, {"eos_token", "<|eot_id|>"}};
    config["tokenizer_class"] = kind;
    config.update(json::parse(flags));
    given.write("tokenizer_config.json", config.dump());
    auto opened = given.open(content);
    BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().what));
    return (*opened)->encode("a", true)->size() - 1;
  };
  for (const char* kind : {"LlamaTokenizerFast", "LlamaTokenizer"}) {
    BOOST_TEST(added(kind, "{}") == 1u);
    BOOST_TEST(added(kind, R"({"add_bos_token": true})") == 1u);
    BOOST_TEST(added(kind, R"({"add_bos_token": false})") == 0u);
    BOOST_TEST(added(kind, R"({"add_eos_token": true})") == 2u);
  }
  BOOST_TEST(added("PreTrainedTokenizerFast", R"({"add_bos_token": false})") == 1u);
  content["post_processor"] = nullptr;
  BOOST_TEST(added("LlamaTokenizerFast", "{}") == 0u);
  BOOST_TEST(added("LlamaTokenizerFast", R"({"add_bos_token": true})") == 1u);
  BOOST_TEST(added("PreTrainedTokenizerFast", R"({"add_bos_token": true})") == 0u);
}

BOOST_AUTO_TEST_CASE(text_that_is_not_utf8_is_refused_at_its_byte) {
  for (const char* name : {"gpt2_pairs", "llama2_old", "sentencepiece_bpe"}) {
    auto opened = tokenizer::open(golden / name);
    BOOST_REQUIRE(opened);
    for (auto [text, at] : {std::pair<std::string, std::string>{"ab\xFF", "byte 2 of 3 is 0xff"},
                            {"\xC3", "byte 0 of 1 is 0xc3"},
                            {"a\xED\xA0\x80", "byte 1 of 4 is 0xed"},
                            {"\xC0\xAF", "byte 0 of 2 is 0xc0"},
                            {"\xF4\x90\x80\x80", "byte 0 of 4 is 0xf4"},
                            {"ok\xF0\x9F\x8E", "byte 2 of 5 is 0xf0"}}) {
      auto encoded = (*opened)->encode(text, true);
      BOOST_REQUIRE(!encoded);
      BOOST_TEST((encoded.error().code == errc::invalid_argument));
      BOOST_TEST(encoded.error().what.find(at) != std::string::npos, encoded.error().what);
    }
  }
}

BOOST_AUTO_TEST_CASE(damaged_sentencepiece_models_are_refused_or_still_work) {
  folder given;
  auto whole = bytes_of(golden / "sentencepiece_bpe" / "tokenizer.model");
  std::mt19937 random(23);
  for (std::string content : {std::string(), std::string("not a model"), whole.substr(0, 1000)}) {
    given.write("tokenizer.model", content);
    refuses(tokenizer::open(given.path), errc::invalid_model, {"bytes"}, "tokenizer.model");
  }
  for (int round = 0; round < 60; ++round) {
    auto damaged = whole;
    for (int flips = 0; flips < 3; ++flips)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    given.write("tokenizer.model", damaged);
    if (auto opened = tokenizer::open(given.path)) // then ids stay within the vocabulary
      if (auto encoded = (*opened)->encode("In the beginning \xF0\x9F\x8E\x89", true))
        BOOST_TEST(bool((*opened)->decode(*encoded, true)));
  }
}

BOOST_AUTO_TEST_CASE(damaged_bytes_of_a_tokenizer_json_never_end_the_process) {
  folder given;
  auto whole = bytes_of(golden / "llama2_new" / "tokenizer.json");
  std::mt19937 random(29);
  for (int round = 0; round < 150; ++round) {
    auto damaged = whole;
    for (int flips = 0; flips < 3; ++flips)
      damaged[random() % damaged.size()] = "\"{}[],:0a\\ \xFF"[random() % 12];
    given.write("tokenizer.json", damaged);
    auto opened = tokenizer::open(given.path);
    if (!opened)
      BOOST_TEST(opened.error().what.find("tokenizer.json") != std::string::npos);
    else if (auto encoded = (*opened)->encode("In the beginning \xF0\x9F\x8E\x89", true))
      BOOST_TEST(bool((*opened)->decode(*encoded, true)));
  }
}
