#include "compute/weights/safetensors.hpp"
#include "compute/weights/write_safetensors.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <random>

using namespace troupe;
using namespace troupe::compute;
using namespace troupe::tests;

namespace {

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string file;
  for (int i = 0; i < 8; ++i)
    file += static_cast<char>(length >> (8 * i));
  return file + rest;
}

/// A file with this header and so many bytes of weights.
std::string make_file(const std::string& header, std::size_t bytes) {
  return with_length(header.size(), header + std::string(bytes, 'w'));
}

result<std::vector<stored_tensor>> parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), "part.safetensors");
}

std::string refusal(const std::string& file) {
  const auto parsed = parse(file);
  BOOST_REQUIRE(!parsed);
  BOOST_TEST((parsed.error().code == errc::invalid_model));
  BOOST_TEST(parsed.error().what.starts_with("part.safetensors: "));
  return parsed.error().what;
}

bool says(const std::string& sentence, std::string_view part) {
  const bool found = sentence.find(part) != std::string::npos;
  BOOST_TEST_INFO(sentence);
  return found;
}

const std::string pair_header =
  R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
  R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"__metadata__":{"format":"pt"}})";

} // namespace

BOOST_AUTO_TEST_CASE(a_header_gives_tensors_in_the_order_of_their_bytes) {
  const auto tensors = parse(make_file(pair_header, 32));
  BOOST_REQUIRE(tensors);
  BOOST_REQUIRE(tensors->size() == 2u);
  BOOST_TEST((*tensors)[0].name == "a");
  BOOST_TEST(((*tensors)[0].type == dtype::f32));
  BOOST_TEST(((*tensors)[0].shape == std::vector<std::size_t>{2, 3}));
  BOOST_TEST((*tensors)[0].offset == 8 + pair_header.size());
  BOOST_TEST((*tensors)[1].bytes == 8u);
  BOOST_TEST(((*tensors)[1].type == dtype::bf16));
}

BOOST_AUTO_TEST_CASE(B01_an_lfs_pointer_is_named) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146"
                              "\nsize 4976698672\n";
  BOOST_TEST(says(refusal(pointer), "Git-LFS pointer"));
}

BOOST_AUTO_TEST_CASE(B25_a_web_page_is_no_model_file_and_its_first_bytes_are_shown) {
  const auto sentence = refusal("<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n");
  BOOST_TEST(says(sentence, "not a model file"));
  BOOST_TEST(says(sentence, "<!DOCTYPE html>\\x0a"));
  BOOST_TEST(says(refusal(""), "not a model file"));
  BOOST_TEST(says(refusal("abc"), "only 3 bytes"));
  BOOST_TEST(says(refusal("GGUF\x03\0\0\0\0\0\0\0"), "not a model file"));
}

BOOST_AUTO_TEST_CASE(a_header_longer_than_the_file_is_refused) {
  for (const std::uint64_t length :
       {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{100'000'001}, std::uint64_t{3}})
    BOOST_TEST(says(refusal(with_length(length, "{}")), "claims"));
}

BOOST_AUTO_TEST_CASE(a_file_that_was_cut_anywhere_is_refused) {
  const auto whole = make_file(pair_header, 32);
  for (std::size_t size = 0; size < whole.size(); ++size)
    BOOST_TEST(!parse(whole.substr(0, size)), "cut to " << size << " bytes");
  BOOST_TEST(says(refusal(whole.substr(0, whole.size() - 1)), "'b'"));
}

BOOST_AUTO_TEST_CASE(ranges_outside_overlapping_or_with_gaps_are_refused_with_the_tensor) {
  const auto pair = [](const std::string& first, const std::string& second) {
    return make_file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first
                       + R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                     8);
  };
  BOOST_TEST(parse(pair("[0,4]", "[4,8]")).has_value());
  BOOST_TEST(parse(pair("[4,8]", "[0,4]")).has_value());
  BOOST_TEST(says(refusal(pair("[0,4]", "[5,9]")), "'b': its bytes [5, 9) lie outside"));
  BOOST_TEST(says(refusal(pair("[0,4]", "[0,4]")), "'a' and 'b' overlap"));
  BOOST_TEST(says(refusal(pair("[0,4]", "[3,7]")), "'a' and 'b' overlap"));
  BOOST_TEST(says(refusal(pair("[4,0]", "[4,8]")), "'a'"));
  BOOST_TEST(says(refusal(pair("[0,4]", "[18446744073709551612,0]")), "'b'"));
  BOOST_TEST(says(refusal(pair("[0,4]", "[-4,0]")), "non-negative"));
  BOOST_TEST(says(refusal(pair("[0,4]", "[4]")), "pair"));
  BOOST_TEST(says(refusal(pair("[0,4]", "[4.5,8]")), "non-negative"));
  const std::string gap = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})";
  BOOST_TEST(says(refusal(make_file(gap, 8)), "4 bytes before tensor 'a'"));
  const std::string rest = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  BOOST_TEST(says(refusal(make_file(rest, 8)), "describes 4 bytes of weights, the file holds 8"));
}

BOOST_AUTO_TEST_CASE(a_shape_that_does_not_fit_its_bytes_is_refused) {
  const auto with_shape = [](const std::string& shape, const std::string& type = "F32") {
    return make_file(
      R"({"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":[0,8]}})", 8);
  };
  BOOST_TEST(parse(with_shape("[2]")).has_value());
  BOOST_TEST(says(refusal(with_shape("[3]")), "needs 12 bytes, but its range holds 8"));
  BOOST_TEST(says(refusal(with_shape("[4294967296,4294967296,4294967296]")), "too many"));
  BOOST_TEST(says(refusal(with_shape("[-2]")), "non-negative"));
  BOOST_TEST(says(refusal(with_shape("2")), "is not a list"));
  BOOST_TEST(says(refusal(with_shape("[2]", "F33")), "'F33' is not known"));
}

BOOST_AUTO_TEST_CASE(a_name_twice_is_refused) {
  const std::string twice = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                            R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  BOOST_TEST(says(refusal(make_file(twice, 4)), "'a' is described twice"));
  const std::string key = R"({"a":{"dtype":"U8","shape":[4],"shape":[1],"data_offsets":[0,4]}})";
  BOOST_TEST(says(refusal(make_file(key, 4)), "'shape' is described twice"));
}

BOOST_AUTO_TEST_CASE(broken_json_deep_nesting_and_strange_names_are_refused_or_read) {
  BOOST_TEST(says(refusal(make_file("{\"a\":", 0)), "not JSON"));
  BOOST_TEST(says(refusal(make_file("{\"a\xff\":1}", 0)), "not JSON"));
  BOOST_TEST(says(refusal(make_file(R"({"a":3})", 0)), "needs dtype, shape and data_offsets"));
  const std::string deep = "{\"a\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  BOOST_TEST(says(refusal(make_file(deep, 0)), "nested deeper"));
  const std::string umlaut =
    "{\"gew\xc3\xb6hnlich\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
  BOOST_TEST(parse(make_file(umlaut, 1)).has_value());
  const std::string wrong =
    "{\"gew\xc3\xb6hnlich\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}";
  BOOST_TEST(says(refusal(make_file(wrong, 1)), "gew\\xc3\\xb6hnlich"));
}

BOOST_AUTO_TEST_CASE(ten_thousand_damaged_files_do_no_harm) {
  const auto whole = make_file(pair_header, 32);
  std::mt19937 random(1);
  std::size_t refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    auto damaged = whole;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    refused += parse(damaged) ? 0 : 1;
  }
  BOOST_TEST(refused > 5000u); // damage to weights or free text cannot be seen in a header
}

BOOST_AUTO_TEST_CASE(B09_what_was_written_is_read_back) {
  const temporary_folder folder;
  const std::vector<tensor_to_write> tensors{{"matrix", dtype::f16, {3, 5}},
                                             {"vector", dtype::f32, {7}}};
  auto writer = safetensors_writer::create(folder / "model.safetensors", tensors);
  BOOST_REQUIRE(writer);
  const std::string bytes = "0123456789";
  BOOST_TEST(writer->write(1, 18, std::as_bytes(std::span(bytes))).has_value());
  BOOST_TEST(writer->write(0, 0, std::as_bytes(std::span(bytes))).has_value());
  BOOST_TEST(!std::filesystem::exists(folder / "model.safetensors"));
  BOOST_REQUIRE(writer->finish().has_value());
  const auto read = read_safetensors_header(folder / "model.safetensors");
  BOOST_REQUIRE(read);
  BOOST_REQUIRE(read->size() == 2u);
  const auto text = read_text(folder / "model.safetensors");
  BOOST_TEST((*read)[0].name == "matrix");
  BOOST_TEST((*read)[0].offset % 64 == 0u);
  BOOST_TEST(text.substr((*read)[0].offset, 10) == bytes);
  BOOST_TEST(text.substr((*read)[1].offset + 18, 10) == bytes);
}

BOOST_AUTO_TEST_CASE(a_writer_that_is_given_up_leaves_nothing) {
  const temporary_folder folder;
  {
    const std::vector<tensor_to_write> tensors{{"vector", dtype::f32, {7}}};
    auto writer = safetensors_writer::create(folder / "model.safetensors", tensors);
    BOOST_REQUIRE(writer);
  }
  BOOST_TEST(std::filesystem::is_empty(folder.path()));
  const std::vector<tensor_to_write> twice{{"a", dtype::f32, {1}}, {"a", dtype::f32, {1}}};
  BOOST_TEST(!safetensors_writer::create(folder / "model.safetensors", twice));
  BOOST_TEST(!safetensors_writer::create("/nowhere/model.safetensors", {}));
}
