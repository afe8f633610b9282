// Which files a folder's weights are in, and folders that are incomplete or wrong.

#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::compute;
using namespace troupe::tests;

namespace {

const std::string index_name = "model.safetensors.index.json";

std::string part(int index) {
  return "model-0000" + std::to_string(index) + "-of-00003.safetensors";
}

tiny_model make_parts() {
  return tiny_model({.layers = 3, .files = 3});
}

partition_record stage(std::size_t begin, std::size_t end, std::size_t layers) {
  return {.units = {begin, end}, .owns_input = begin == 0, .owns_output = end == layers};
}

bool says(const std::string& sentence, std::string_view part_of_it) {
  BOOST_TEST_MESSAGE(sentence);
  return sentence.find(part_of_it) != std::string::npos;
}

/// Replaces the first occurrence of `from` in a file.
void edit(const std::filesystem::path& file, const std::string& from, const std::string& to) {
  auto text = read_text(file);
  const auto at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  write_text(file, text.replace(at, from.size(), to));
}

} // namespace

BOOST_AUTO_TEST_CASE(B03_one_file_without_an_index_loads) {
  const tiny_model model;
  BOOST_TEST(model.open()->shape().layers == 2u);
  std::filesystem::rename(model.folder() / "model.safetensors",
                          model.folder() / "weights.safetensors");
  BOOST_TEST(model.open()->shape().layers == 2u);
}

BOOST_AUTO_TEST_CASE(B03_an_index_with_one_file_loads) {
  const auto parts = make_parts();
  auto index = read_text(parts.folder() / index_name);
  for (int i = 1; i <= 3; ++i)
    for (auto at = index.find(part(i)); at != std::string::npos; at = index.find(part(i)))
      index.replace(at, part(i).size(), "model.safetensors");
  const tiny_model whole({.layers = 3, .files = 1});
  write_text(whole.folder() / index_name, index);
  BOOST_TEST(whole.open()->shape().layers == 3u);
}

BOOST_AUTO_TEST_CASE(B23_parts_without_an_index_are_all_read) {
  const auto model = make_parts();
  std::filesystem::remove(model.folder() / index_name);
  BOOST_TEST(model.open()->describe(stage(0, 3, 3), dtype::f32).has_value());
}

BOOST_AUTO_TEST_CASE(B23_missing_parts_are_counted_against_the_declared_total) {
  const auto model = make_parts();
  std::filesystem::remove(model.folder() / index_name);
  std::filesystem::remove(model.folder() / part(2));
  const auto described = model.open()->describe(stage(0, 3, 3), dtype::f32);
  BOOST_REQUIRE(!described);
  BOOST_TEST(says(described.error().what, "1 of 3 parts are missing: " + part(2)));
}

BOOST_AUTO_TEST_CASE(B29_files_that_no_rank_here_needs_may_be_deleted) {
  const auto model = make_parts();
  const auto before = model.open()->description_digest();
  std::filesystem::remove(model.folder() / part(3));
  const auto opened = model.open();
  BOOST_TEST((opened->description_digest() == before));
  const auto first = opened->describe(stage(0, 1, 3), dtype::f32);
  BOOST_REQUIRE_MESSAGE(first, (first ? "" : first.error().what));
  for (const auto& tensor : first->tensors)
    BOOST_TEST(tensor.file != part(3));
}

BOOST_AUTO_TEST_CASE(B03_B29_a_rank_that_needs_a_deleted_file_is_refused_with_tensor_and_file) {
  const auto model = make_parts();
  std::filesystem::remove(model.folder() / part(3));
  const auto last = model.open()->describe(stage(2, 3, 3), dtype::f32);
  BOOST_REQUIRE(!last);
  BOOST_TEST((last.error().code == errc::not_found));
  BOOST_TEST(says(last.error().what, "tensor 'model.layers.2."));
  BOOST_TEST(says(last.error().what, part(3)));
}

BOOST_AUTO_TEST_CASE(B03_a_tensor_that_the_index_places_wrongly_is_refused_by_name) {
  const auto model = make_parts();
  edit(model.folder() / index_name,
       R"("model.norm.weight": "model-00003)",
       R"("model.norm.weight": "model-00001)");
  const auto sentence = model.refusal();
  BOOST_TEST(says(sentence, "places tensor 'model.norm.weight' in '" + part(1) + "'"));
  BOOST_TEST(says(sentence, part(3)));
}

BOOST_AUTO_TEST_CASE(B03_a_tensor_that_no_file_holds_is_refused_by_name) {
  const auto model = make_parts();
  edit(model.folder() / part(3), "model.norm.weight", "model.norm.weighs");
  BOOST_TEST(says(model.refusal(), "tensor 'model.norm.weight'"));
}

BOOST_AUTO_TEST_CASE(B03_a_tensor_in_two_files_is_refused_by_name) {
  const auto model = make_parts();
  write_text(model.folder() / part(2), read_text(model.folder() / part(1)));
  const auto sentence = model.refusal();
  BOOST_TEST(says(sentence, "tensor 'model.embed_tokens.weight' is in two files"));
  BOOST_TEST(says(sentence, part(2)));
}

BOOST_AUTO_TEST_CASE(an_index_that_leaves_the_folder_is_refused) {
  const auto model = make_parts();
  edit(model.folder() / index_name, "\"" + part(1), "\"../" + part(1));
  BOOST_TEST(says(model.refusal(), "a file name of the same folder"));
}

BOOST_AUTO_TEST_CASE(B01_the_pointer_among_the_parts_is_named) {
  const auto model = make_parts();
  write_text(model.folder() / part(2),
             "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
  const auto sentence = model.refusal();
  BOOST_TEST(says(sentence, "Git-LFS pointer"));
  BOOST_TEST(says(sentence, part(2)));
}

BOOST_AUTO_TEST_CASE(B25_a_web_page_in_place_of_the_weights_is_shown) {
  const tiny_model model;
  write_text(model.folder() / "model.safetensors", "<html><body>Not found</body></html>");
  BOOST_TEST(says(model.refusal(), "not a model file"));
  write_text(model.folder() / "config.json", "<html><body>Not found</body></html>");
  BOOST_TEST(says(model.refusal(), "<html><body>"));
}

BOOST_AUTO_TEST_CASE(folders_without_readable_weights_say_what_is_there) {
  const tiny_model model;
  std::filesystem::rename(model.folder() / "model.safetensors", model.folder() / "model.gguf");
  BOOST_TEST(says(model.refusal(), "'model.gguf'"));
  std::filesystem::remove(model.folder() / "model.gguf");
  BOOST_TEST(says(model.refusal(), "no .safetensors file"));
  const auto none = model::open("/nowhere/at/all");
  BOOST_REQUIRE(!none);
  BOOST_TEST((none.error().code == errc::not_found));
}

BOOST_AUTO_TEST_CASE(several_files_that_nothing_orders_are_refused) {
  const tiny_model model;
  std::filesystem::copy_file(model.folder() / "model.safetensors",
                             model.folder() / "a.safetensors");
  BOOST_TEST(model.open()->shape().layers == 2u); // the usual name wins
  std::filesystem::rename(model.folder() / "model.safetensors", model.folder() / "b.safetensors");
  BOOST_TEST(says(model.refusal(), "a.safetensors, b.safetensors"));
}

BOOST_AUTO_TEST_CASE(rule_07_an_unexpected_tensor_is_refused_by_name) {
  const tiny_model model({.layers = 2, .biases = true});
  model.edit_config(R"("mlp_bias": true)", R"("mlp_bias": false)");
  BOOST_TEST(says(model.refusal(), ".bias' is not expected"));
}

BOOST_AUTO_TEST_CASE(rule_07_a_tensor_of_a_wrong_shape_is_refused_with_both_shapes) {
  const tiny_model model({.ffn = 128});
  model.edit_config(R"("intermediate_size": 128)", R"("intermediate_size": 96)");
  const auto sentence = model.refusal();
  BOOST_TEST(says(sentence, "has the shape ["));
  BOOST_TEST(says(sentence, "the config asks for ["));
}

BOOST_AUTO_TEST_CASE(A21_folders_of_equal_shape_and_other_weights_have_other_fingerprints) {
  const tiny_model one({.seed = 1});
  const tiny_model same({.seed = 1});
  const tiny_model other({.seed = 2});
  BOOST_TEST((one.open()->description_digest() == other.open()->description_digest()));
  const auto first = one.open()->fingerprints();
  const auto second = same.open()->fingerprints();
  const auto third = other.open()->fingerprints();
  BOOST_REQUIRE(first);
  BOOST_REQUIRE(second);
  BOOST_REQUIRE(third);
  BOOST_REQUIRE(first->size() == third->size());
  for (std::size_t i = 0; i < first->size(); ++i) {
    BOOST_TEST(((*first)[i].digest == (*second)[i].digest));
    BOOST_TEST(((*first)[i].digest != (*third)[i].digest), (*first)[i].tensor);
  }
}

BOOST_AUTO_TEST_CASE(a_config_that_changes_results_changes_the_description_digest) {
  const tiny_model model;
  const auto before = model.open()->description_digest();
  model.edit_config(R"("rope_theta": 10000.0)", R"("rope_theta": 10001.0)");
  const auto theta = model.open()->description_digest();
  BOOST_TEST((theta != before));
  model.edit_config(R"("rms_norm_eps": 1e-05)", R"("rms_norm_eps": 1e-06)");
  BOOST_TEST((model.open()->description_digest() != theta));
}
