// Where a model keeps its chat templates, and the start token.

#include "compute/chat/chat_format.hpp"
#include "tests/paths.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

using namespace troupe;
using namespace troupe::compute;
using namespace troupe::compute::chat;

namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

value conversation() {
  return value::items{value(dictionary{{"role", "user"}, {"content", "Hi"}})};
}

std::string rendered(const fs::path& folder, const render_options& options = {}) {
  auto opened = chat_format::open(folder);
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().what));
  auto made = (*opened)->render(conversation(), options);
  return made ? *made : made.error().what;
}

render_options with_tools() {
  render_options options;
  options.tools = value::items{value(dictionary{{"type", "function"}})};
  return options;
}

/// A tokenizer of the fixtures and the settings that `config` gives.
std::unique_ptr<tokenizer>
words_with(const fs::path& folder, const std::string& fixture, const std::string& config) {
  fs::create_directories(folder);
  auto from = fs::path(TROUPE_SOURCE_DIR "/tests/golden/tokenizer") / fixture;
  if (fixture == "demo")
    from = TROUPE_SOURCE_DIR "/config/demo";
  for (auto file : {"tokenizer.json", "tokenizer.model"})
    if (fs::exists(from / file))
      fs::copy_file(from / file, folder / file, fs::copy_options::overwrite_existing);
  write(folder / "tokenizer_config.json", config);
  auto opened = tokenizer::open(folder);
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().what));
  return std::move(*opened);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_template_is_found_wherever_models_keep_it) {
  tests::temporary_folder folder;
  auto config = folder.path() / "tokenizer_config.json";
  write(config,
        R"({"chat_template": "{{ bos_token }}{{ messages[0].content }}", "bos_token": "<s>"})");
  BOOST_CHECK_EQUAL(rendered(folder.path()), "<s>Hi");
  write(
    config,
    R"({"chat_template": "{{ bos_token }}", "bos_token": {"content": "<b>", "lstrip": false}})");
  BOOST_CHECK_EQUAL(rendered(folder.path()), "<b>");
  write(config,
        R"({"chat_template": [{"name": "default", "template": "D"},
                              {"name": "tool_use", "template": "T{{ tools | length }}"}]})");
  BOOST_CHECK_EQUAL(rendered(folder.path()), "D");
  BOOST_CHECK_EQUAL(rendered(folder.path(), with_tools()), "T1");
  write(folder.path() / "chat_template.json", R"({"chat_template": "J"})");
  BOOST_CHECK_EQUAL(rendered(folder.path(), with_tools()), "J");
  write(folder.path() / "chat_template.jinja", "F\n");
  BOOST_CHECK_EQUAL(rendered(folder.path()), "F");
  write(folder.path() / "additional_chat_templates" / "tool_use.jinja", "U");
  BOOST_CHECK_EQUAL(rendered(folder.path()), "F");
  BOOST_CHECK_EQUAL(rendered(folder.path(), with_tools()), "U");
}

BOOST_AUTO_TEST_CASE(a_model_without_a_template_is_a_base_model) {
  auto opened = chat_format::open(TROUPE_SOURCE_DIR "/config/demo");
  BOOST_REQUIRE(!opened);
  BOOST_CHECK(opened.error().code == errc::not_found);
  BOOST_CHECK(opened.error().what.find("has no chat template") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_damaged_template_names_its_file) {
  tests::temporary_folder folder;
  write(folder.path() / "chat_template.jinja", "a\n{{ x");
  auto broken = chat_format::open(folder.path());
  BOOST_REQUIRE(!broken);
  BOOST_CHECK(broken.error().what.find("chat_template.jinja, line 2, column 1")
              != std::string::npos);
  fs::remove(folder.path() / "chat_template.jinja");
  write(folder.path() / "tokenizer_config.json", R"({"chat_template": [{"name": "a"}]})");
  auto missing = chat_format::open(folder.path());
  BOOST_REQUIRE(!missing);
  BOOST_CHECK(missing.error().what.find("chat_template") != std::string::npos);
  write(folder.path() / "tokenizer_config.json",
        R"({"chat_template": [{"name": "rag", "template": "x"}]})");
  auto named = chat_format::open(folder.path());
  BOOST_REQUIRE(named);
  auto made = (*named)->render(conversation(), {});
  BOOST_REQUIRE(!made);
  BOOST_CHECK(made.error().what.find("templates rag, but none is named default")
              != std::string::npos);
}

// Rows of llama.cpp's and other trackers: a template writes the start token, and the tokenizer puts
// one there as well.
BOOST_AUTO_TEST_CASE(exactly_one_start_token_whatever_template_and_tokenizer_say) {
  struct shape {
    const char *fixture, *config;
    bool adds; ///< The tokenizer puts a start token in front of a text.
  };

  const std::string names = R"("bos_token": "<s>", "eos_token": "</s>", )";
  const std::string begins = R"({"bos_token": "<|begin_of_text|>"})";
  const std::string off =
    R"({"bos_token": "<s>", "eos_token": "</s>", "tokenizer_class": "LlamaTokenizer",
        "add_bos_token": false})";
  const std::string on =
    R"({"bos_token": "<s>", "eos_token": "</s>", "tokenizer_class": "LlamaTokenizer",
        "add_bos_token": true, "add_eos_token": true})";
  for (auto [fixture, config, adds] : {shape{"llama3", begins.c_str(), true},
                                       shape{"llama2_new", on.c_str(), true},
                                       shape{"llama2_new", off.c_str(), false},
                                       shape{"sentencepiece_bpe", on.c_str(), true}}) {
    tests::temporary_folder folder;
    auto words = words_with(folder.path(), fixture, config);
    BOOST_REQUIRE(words->bos());
    auto start = *words->bos();
    auto piece = words->piece(start);
    for (std::string text : {"Hi", "", " Hi", "Hi there\n"}) {
      for (int written = 0; written < 4; ++written) {
        std::string whole;
        for (int count = 0; count < written; ++count)
          whole += piece;
        auto ids = encode_prompt(*words, whole + text);
        BOOST_REQUIRE(ids);
        auto starts = std::count(ids->begin(), ids->end(), start);
        BOOST_TEST_CONTEXT(fixture << " " << written << " '" << text << "'") {
          BOOST_CHECK_EQUAL(starts, adds || written > 0 ? 1 : 0);
          BOOST_CHECK(starts == 0 || ids->front() == start);
          if (words->eos() && *words->eos() != start)
            BOOST_CHECK_EQUAL(std::count(ids->begin(), ids->end(), *words->eos()), 0);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_prompt_is_the_template_and_then_the_tokenizer) {
  tests::temporary_folder folder;
  auto words = words_with(folder.path(),
                          "demo",
                          R"({"bos_token": "<|begin_of_text|>",
        "chat_template": "{{ bos_token }}{{ messages[0].content }}."})");
  auto format = chat_format::open(folder.path());
  BOOST_REQUIRE(format);
  auto ids = (*format)->prompt(*words, conversation(), {});
  auto expected = words->encode("Hi.", false);
  BOOST_REQUIRE(ids);
  BOOST_REQUIRE(expected);
  expected->insert(expected->begin(), *words->bos());
  BOOST_CHECK_EQUAL_COLLECTIONS(ids->begin(), ids->end(), expected->begin(), expected->end());
}
