// config.json: families, keys old and new, what is refused, and the tokens that end a text.

#include "compute/architectures/family.hpp"
#include "tests/support/stage_grid.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

using namespace troupe;
using namespace troupe::compute;
using namespace troupe::tests;

namespace {

/// A config with these keys in place of, or beside, the usual ones.
std::string config(const std::string& more, const std::string& type = "llama") {
  return R"({"model_type": ")" + type + R"(", "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 100,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5)"
         + (more.empty() ? "" : ", " + more) + "}";
}

result<decoder_spec> read(const std::string& text) {
  auto object = json_object::parse(text, "config.json");
  BOOST_REQUIRE_MESSAGE(object, (object ? "" : object.error().what));
  return read_decoder(*object);
}

decoder_spec accept(const std::string& text) {
  auto spec = read(text);
  BOOST_REQUIRE_MESSAGE(spec, (spec ? "" : spec.error().what));
  return *spec;
}

std::string refusal(const std::string& text) {
  auto spec = read(text);
  BOOST_REQUIRE(!spec);
  return spec.error().what;
}

bool says(const std::string& sentence, std::string_view part) {
  BOOST_TEST_MESSAGE(sentence);
  return sentence.find(part) != std::string::npos;
}

bool same_rope(const decoder_spec& left, const decoder_spec& right) {
  return left.rope.inverse_frequencies == right.rope.inverse_frequencies
         && left.rope.magnitude == right.rope.magnitude
         && left.shape.context == right.shape.context;
}

} // namespace

BOOST_AUTO_TEST_CASE(sizes_are_read_and_head_dim_need_not_divide) {
  const auto plain = accept(config(""));
  BOOST_TEST(plain.shape.head_dim == 8u);
  BOOST_TEST(plain.shape.family == "llama");
  BOOST_TEST(plain.shape.context == 64u);
  BOOST_TEST(accept(config(R"("head_dim": 20)")).shape.head_dim == 20u);
  BOOST_TEST(accept(config("", "qwen3")).shape.head_dim == 128u);
}

BOOST_AUTO_TEST_CASE(families_declare_their_biases_and_norms) {
  BOOST_TEST(!accept(config("")).input_bias);
  const auto biased = accept(config(R"("attention_bias": true, "mlp_bias": true)"));
  BOOST_TEST((biased.input_bias && biased.output_bias && biased.mlp_bias));
  const auto qwen2 = accept(config("", "qwen2"));
  BOOST_TEST((qwen2.input_bias && !qwen2.output_bias && !qwen2.head_norm));
  const auto qwen3 = accept(config("", "qwen3"));
  BOOST_TEST((!qwen3.input_bias && qwen3.head_norm));
}

BOOST_AUTO_TEST_CASE(windows_follow_each_familys_keys) {
  using list = std::vector<std::size_t>;
  BOOST_TEST((accept(config("")).windows == list{0, 0, 0}));
  BOOST_TEST((accept(config(R"("sliding_window": 8)", "mistral")).windows == list{8, 8, 8}));
  BOOST_TEST((accept(config(R"("sliding_window": null)", "mistral")).windows == list{0, 0, 0}));
  BOOST_TEST((accept(config("", "mistral")).windows == list{4096, 4096, 4096}));
  const std::string upper = R"("sliding_window": 8, "max_window_layers": 1)";
  BOOST_TEST((accept(config(upper, "qwen2")).windows == list{0, 0, 0}));
  BOOST_TEST(
    (accept(config(upper + R"(, "use_sliding_window": true)", "qwen2")).windows == list{0, 8, 8}));
  const std::string types = R"("layer_types": ["sliding_attention", "full_attention",
    "sliding_attention"], "use_sliding_window": true, "sliding_window": 5)";
  BOOST_TEST((accept(config(types, "qwen3")).windows == list{5, 0, 5}));
  BOOST_TEST(says(refusal(config(R"("layer_types": ["full_attention"])", "qwen2")),
                  "has 1 entries for 3 layers"));
  BOOST_TEST(says(refusal(config(R"("layer_types": ["a", "b", "c"])", "qwen2")), "names 'a'"));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_computed_is_refused_with_key_and_value) {
  BOOST_TEST(says(refusal(config("", "gpt2")), "'gpt2'; the known families are llama, mistral"));
  BOOST_TEST(says(refusal(config(R"("architectures": ["LlamaForSequenceClassification"])")),
                  "'LlamaForSequenceClassification'"));
  BOOST_TEST(says(refusal(config(R"("quantization_config": {"quant_method": "gptq"})")),
                  "quantised weights"));
  BOOST_TEST(says(refusal(config(R"("hidden_act": "gelu")")), "'gelu'; only 'silu'"));
  BOOST_TEST(says(refusal(config(R"("partial_rotary_factor": 0.5)")), "partial_rotary_factor"));
  auto text = config("");
  text.replace(text.find("\"num_key_value_heads\": 2"), 24, "\"num_key_value_heads\": 3");
  BOOST_TEST(says(refusal(text), "3, which does not divide the 8 query heads"));
  BOOST_TEST(says(refusal(config(R"("head_dim": 7)")), "even number"));
}

BOOST_AUTO_TEST_CASE(sizes_that_are_no_sizes_are_refused) {
  for (const auto* bad : {"0", "-1", "1.5", "\"64\"", "1e300", "18446744073709551615", "[64]"}) {
    auto text = config("");
    text.replace(text.find("\"hidden_size\": 64"), 17, std::string("\"hidden_size\": ") + bad);
    BOOST_TEST(says(refusal(text), "'hidden_size' is "), bad);
  }
  auto missing = config("");
  missing.replace(missing.find("\"hidden_size\": 64,"), 18, "");
  BOOST_TEST(says(refusal(missing), "'hidden_size' is missing"));
  BOOST_TEST(says(refusal(config(R"("head_dim": 99999998)")), "at most 16777216"));
}

BOOST_AUTO_TEST_CASE(B11_old_and_new_rope_keys_mean_the_same) {
  const std::string scaling = R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 40)";
  const auto old_keys = accept(config(R"("rope_theta": 500000.0, "rope_scaling": {"rope_type":
    "llama3", )" + scaling + "}"));
  const auto new_keys = accept(config(R"("rope_parameters": {"rope_theta": 500000.0, "rope_type":
    "llama3", )" + scaling + "}"));
  BOOST_TEST(same_rope(old_keys, new_keys));
  BOOST_TEST(!same_rope(new_keys, accept(config(R"("rope_theta": 500000.0)"))));
  const auto plain = accept(config(R"("rope_theta": 500000.0)"));
  BOOST_TEST(same_rope(plain, accept(config(R"("rope_parameters": {"rope_theta": 500000.0})"))));
  BOOST_TEST(same_rope(plain, accept(config(R"("rope_theta": 500000.0, "rope_scaling": {"type":
    "default"})"))));
}

BOOST_AUTO_TEST_CASE(B11_both_spellings_give_the_same_logits) {
  const tiny_model model({.context = 256});
  const std::vector<token_id> prompt{7, 200, 3, 99, 12, 41};
  model.edit_config(R"("rope_theta": 10000.0)",
                    R"("rope_theta": 77000.0, "rope_scaling": {"type": "linear", "factor": 2.0})");
  stage_grid with_old_keys(model.open());
  const auto expected = run_greedy(with_old_keys, prompt, 8, 10);
  model.edit_config(R"("rope_theta": 77000.0, "rope_scaling": {"type": "linear", "factor": 2.0})",
                    R"("rope_parameters": {"rope_theta": 77000.0, "rope_type": "linear",
                        "factor": 2.0})");
  stage_grid with_new_keys(model.open());
  BOOST_TEST((run_greedy(with_new_keys, prompt, 8, 10).logits == expected.logits));
}

BOOST_AUTO_TEST_CASE(B11_what_is_not_understood_in_rope_is_an_error) {
  const auto in_block = [](const std::string& inside) {
    return config(R"("rope_theta": 10000.0, "rope_scaling": {)" + inside + "}");
  };
  BOOST_TEST(says(refusal(in_block(R"("rope_type": "longrope", "factor": 4)")),
                  "'longrope'; default, linear, dynamic, llama3, yarn can be computed"));
  BOOST_TEST(says(refusal(in_block(R"("type": "linear", "factor": 4, "alpha": 1)")),
                  "'rope_scaling.alpha' is not understood"));
  BOOST_TEST(says(refusal(in_block(R"("factor": 4)")), "'rope_scaling.factor' is not understood"));
  BOOST_TEST(says(refusal(in_block(R"("type": "linear")")), "'rope_scaling.factor' is missing"));
  BOOST_TEST(says(refusal(in_block(R"("type": "linear", "rope_type": "yarn", "factor": 4)")),
                  "'type' is 'linear'"));
  BOOST_TEST(says(refusal(in_block(R"("type": "linear", "factor": 0.5)")), "1 to 65536"));
  BOOST_TEST(says(refusal(config(R"("rope_interleaved": true)")), "rope_interleaved"));
  BOOST_TEST(says(refusal(config(R"("rope_theta": 1e4, "rope_parameters": {"rope_theta": 5e5})")),
                  "another place says"));
  BOOST_TEST(says(refusal(config(R"("rope_scaling": {"type": "linear", "factor": 2},
    "rope_parameters": {"rope_type": "linear", "factor": 4})")),
                  "something else"));
  BOOST_TEST(says(refusal(config(R"("rope_parameters": {"full_attention": {"rope_theta": 1e4}})")),
                  "full_attention"));
}

BOOST_AUTO_TEST_CASE(a_context_ends_where_results_would_depend_on_other_rows) {
  const auto in_block = [](const std::string& inside) {
    return accept(config(R"("rope_scaling": {)" + inside + "}")).shape.context;
  };
  BOOST_TEST(in_block(R"("type": "dynamic", "factor": 2)") == 64u);
  BOOST_TEST(in_block(R"("type": "linear", "factor": 2)") == 128u);
  BOOST_TEST(in_block(R"("type": "yarn", "factor": 4, "original_max_position_embeddings": 64)")
             == 256u);
}

BOOST_AUTO_TEST_CASE(B05_a_missing_head_is_refused_never_random) {
  const tiny_model model({.tied_head = true});
  model.edit_config(R"("tie_word_embeddings": true)", R"("tie_word_embeddings": false)");
  BOOST_TEST(says(model.refusal(), "'lm_head.weight' is missing"));
  model.edit_config(R"("tie_word_embeddings": false,)", "");
  BOOST_TEST(says(model.refusal(), "'lm_head.weight' is missing"));
}

BOOST_AUTO_TEST_CASE(B05_a_tie_flag_in_the_text_section_counts_unless_it_contradicts) {
  const tiny_model model({.tied_head = true});
  model.edit_config(R"("tie_word_embeddings": true)",
                    R"("text_config": {"tie_word_embeddings": true})");
  BOOST_TEST(model.open()->shape().tied_head);
  model.edit_config(
    R"("text_config": {"tie_word_embeddings": true})",
    R"("tie_word_embeddings": false, "text_config": {"tie_word_embeddings": true})");
  BOOST_TEST(says(model.refusal(), "have to agree"));
}

BOOST_AUTO_TEST_CASE(B13_end_tokens_are_the_union_of_three_files) {
  const tiny_model model;
  using list = std::vector<token_id>;
  BOOST_TEST((model.open()->end_tokens() == list{2}));
  write_text(model.folder() / "generation_config.json", R"({"eos_token_id": [2, 7]})");
  BOOST_TEST((model.open()->end_tokens() == list{2, 7}));
  write_text(model.folder() / "tokenizer_config.json", R"({"eos_token": {"content": "<|end|>"},
    "added_tokens_decoder": {"5": {"content": "<|end|>"}, "6": {"content": "<|user|>"}}})");
  BOOST_TEST((model.open()->end_tokens() == list{2, 5, 7}));
  model.edit_config(R"("eos_token_id": 2)", R"("eos_token_id": [9, 2])");
  BOOST_TEST((model.open()->end_tokens() == list{2, 5, 7, 9}));
  model.edit_config(R"("eos_token_id": [9, 2])", R"("eos_token_id": "two")");
  BOOST_TEST(says(model.refusal(), "'eos_token_id' is \"two\""));
}

BOOST_AUTO_TEST_CASE(hostile_numbers_do_not_overflow) {
  BOOST_TEST(
    says(refusal(config(R"("rope_scaling": {"type": "linear", "factor": 1e300})")), "1 to 65536"));
  auto text = config("");
  text.replace(text.find("\"max_position_embeddings\": 64"),
               29,
               "\"max_position_embeddings\": 281474976710655");
  BOOST_TEST(says(refusal(text), "at most 2147483648"));
  text = config("");
  text.replace(text.find("1e-5"), 4, "-1.0");
  BOOST_TEST(says(refusal(text), "'rms_norm_eps' is -1"));
}

BOOST_AUTO_TEST_CASE(two_thousand_damaged_configs_do_no_harm) {
  const auto whole = config(R"("rope_theta": 1e4, "rope_scaling": {"rope_type": "yarn", "factor": 4,
    "original_max_position_embeddings": 16}, "use_sliding_window": true, "sliding_window": 9)",
                            "qwen3");
  accept(whole);
  std::mt19937 random(1);
  std::size_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    auto damaged = whole;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes)
      damaged[random() % damaged.size()] = static_cast<char>(32 + random() % 95);
    auto object = json_object::parse(damaged, "config.json");
    refused += !object || !read_decoder(*object) ? 1 : 0;
  }
  BOOST_TEST(refused > 1000u); // damage to blanks and digits leaves another sound config
}

BOOST_AUTO_TEST_CASE(B09_a_written_model_is_read_back_as_it_was_asked_for) {
  const random_model wanted{.family = "qwen3",
                            .layers = 3,
                            .hidden = 40,
                            .heads = 6,
                            .kv_heads = 3,
                            .head_dim = 14,
                            .ffn = 50,
                            .vocabulary = 130,
                            .context = 512,
                            .tied_head = true,
                            .stored = dtype::bf16,
                            .files = 2,
                            .seed = 9};
  const tiny_model written(wanted);
  const auto shape = written.open()->shape();
  BOOST_TEST(shape.head_dim == 14u);
  BOOST_TEST(shape.heads == 6u);
  BOOST_TEST(shape.kv_heads == 3u);
  BOOST_TEST(shape.context == 512u);
  BOOST_TEST((shape.stored == dtype::bf16));
  const tiny_model again(wanted);
  for (const auto* file : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
    BOOST_TEST((read_text(written.folder() / file) == read_text(again.folder() / file)), file);
}
