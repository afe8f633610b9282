#include "compute/boundary.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::compute;

namespace {

boundary_schema make_schema() {
  using kind = dimension::kind;
  return {.identity = "llama/hidden32",
          .primary = {"hidden", dtype::f32, {{kind::rows, 0}, {kind::fixed, 32}}},
          .auxiliaries = {{"residual", dtype::f32, {{kind::rows, 0}, {kind::fixed, 8}}}}};
}

std::vector<offered_tensor> make_offer(std::size_t rows) {
  return {{"hidden", dtype::f32, {rows, 32}}, {"residual", dtype::f32, {rows, 8}}};
}

std::string refusal(const boundary_schema& schema) {
  const auto valid = schema.validate();
  BOOST_REQUIRE(!valid);
  BOOST_TEST((valid.error().code == errc::contract_violation));
  return valid.error().what;
}

std::string refusal(const std::vector<offered_tensor>& offer,
                    std::size_t rows = 4,
                    std::string_view identity = "llama/hidden32") {
  const auto admitted = admit_boundary(make_schema(), identity, offer, rows, 16);
  BOOST_REQUIRE(!admitted);
  BOOST_TEST((admitted.error().code == errc::contract_violation));
  return admitted.error().what;
}

bool says(const std::string& sentence, std::string_view part) {
  return sentence.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(rule_12_a_sound_schema_is_valid_and_counts_its_bytes) {
  BOOST_TEST(make_schema().validate().has_value());
  BOOST_TEST(make_schema().bytes(3) == 3 * (32 + 8) * 4);
}

BOOST_AUTO_TEST_CASE(rule_12_each_unsound_schema_has_its_own_sentence) {
  auto schema = make_schema();
  schema.identity.clear();
  BOOST_TEST(says(refusal(schema), "empty identity"));
  schema = make_schema();
  schema.primary.type = dtype::f16;
  BOOST_TEST(says(refusal(schema), "is of type f16"));
  schema = make_schema();
  schema.auxiliaries[0].role.clear();
  BOOST_TEST(says(refusal(schema), "empty role"));
  schema = make_schema();
  schema.auxiliaries[0].role = "hidden";
  BOOST_TEST(says(refusal(schema), "two boundary tensors have the role 'hidden'"));
  schema = make_schema();
  schema.auxiliaries[0].shape.clear();
  BOOST_TEST(says(refusal(schema), "'residual' has no dimension"));
  schema = make_schema();
  schema.primary.shape[1].size = 0;
  BOOST_TEST(says(refusal(schema), "fixed dimension of size 0"));
}

BOOST_AUTO_TEST_CASE(rule_37_a_matching_offer_is_admitted) {
  BOOST_TEST(admit_boundary(make_schema(), "llama/hidden32", make_offer(4), 4, 16).has_value());
  BOOST_TEST(admit_boundary(make_schema(), "llama/hidden32", make_offer(16), 16, 16).has_value());
}

BOOST_AUTO_TEST_CASE(rule_37_each_mismatch_has_its_own_sentence) {
  auto offer = make_offer(4);
  offer.pop_back();
  BOOST_TEST(says(refusal(offer), "has 1 tensors; 2 are expected"));
  offer = make_offer(4);
  offer[1].role = "hidden";
  BOOST_TEST(says(refusal(offer), "has the role 'hidden'; 'residual' is expected"));
  offer = make_offer(4);
  offer[0].shape[1] = 31;
  BOOST_TEST(says(refusal(offer), "'hidden' has the shape [4, 31]; [4, 32] is expected"));
  offer = make_offer(4);
  offer[0].shape = {4, 32, 1};
  BOOST_TEST(says(refusal(offer), "[4, 32, 1]"));
  offer = make_offer(4);
  offer[1].type = dtype::bf16;
  BOOST_TEST(says(refusal(offer), "'residual' is of type bf16; f32 is expected"));
  BOOST_TEST(says(refusal(make_offer(4), 4, "qwen2/hidden32"), "schema 'qwen2/hidden32'"));
}

BOOST_AUTO_TEST_CASE(rule_36_rows_are_positive_and_within_the_maximum) {
  BOOST_TEST(says(refusal(make_offer(0), 0), "0 rows"));
  BOOST_TEST(says(refusal(make_offer(17), 17), "17 rows; at most 16"));
}

BOOST_AUTO_TEST_CASE(rule_37_the_order_is_count_role_shape_type_identity_rows) {
  // Everything is wrong at once, and then one thing less each time.
  std::vector<offered_tensor> offer{{"x", dtype::f16, {3}}};
  BOOST_TEST(says(refusal(offer, 0, "other"), "tensors"));
  offer.push_back({"residual", dtype::f32, {0, 8}});
  BOOST_TEST(says(refusal(offer, 0, "other"), "role"));
  offer[0].role = "hidden";
  BOOST_TEST(says(refusal(offer, 0, "other"), "shape"));
  offer[0].shape = {0, 32};
  BOOST_TEST(says(refusal(offer, 0, "other"), "type"));
  offer[0].type = dtype::f32;
  BOOST_TEST(says(refusal(offer, 0, "other"), "schema"));
  BOOST_TEST(says(refusal(offer, 0), "rows"));
}
