#include "transport/frame.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <random>
#include <vector>

using namespace troupe;
using namespace troupe::transport;

namespace {

using bytes = std::array<std::byte, frame_header_bytes>;

frame_header tensor_header() {
  frame_header header;
  header.kind = first_message_kind;
  header.type = dtype::bf16;
  header.epoch = epoch_id{0x0102030405060708};
  header.step = step_id{9};
  header.sequence = 10;
  header.flags = 11;
  header.rows = 3;
  header.columns = 5;
  header.payload_bytes = 30;
  header.digest = 12;
  header.tag = 13;
  header.source = 14;
  header.destination = 15;
  return header;
}

bytes encoded(const frame_header& header) {
  bytes out;
  encode(header, out);
  return out;
}

errc refusal(const bytes& wire, std::uint64_t payload_bytes_found) {
  auto header = decode(wire, payload_bytes_found);
  BOOST_REQUIRE(!header);
  BOOST_TEST(!header.error().what.empty());
  return header.error().code;
}

template <class T>
bytes with(bytes wire, std::size_t at, T value) {
  std::memcpy(wire.data() + at, &value, sizeof value);
  return wire;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_header_is_read_as_it_was_written) {
  const auto header = decode(encoded(tensor_header()), 30);
  BOOST_REQUIRE(header);
  BOOST_TEST(header->kind == first_message_kind);
  BOOST_TEST((header->type == dtype::bf16));
  BOOST_TEST((header->epoch == epoch_id{0x0102030405060708}));
  BOOST_TEST((header->step == step_id{9}));
  BOOST_TEST(header->sequence == 10u);
  BOOST_TEST(header->flags == 11u);
  BOOST_TEST(header->rows == 3u);
  BOOST_TEST(header->columns == 5u);
  BOOST_TEST(header->digest == 12u);
  BOOST_TEST(header->tag == 13u);
  BOOST_TEST(header->source == 14u);
  BOOST_TEST(header->destination == 15u);
}

BOOST_AUTO_TEST_CASE(the_byte_table_holds) {
  const auto wire = encoded(tensor_header());
  BOOST_TEST(std::memcmp(wire.data(), "TRPE", 4) == 0);
  BOOST_TEST(std::to_integer<int>(wire[8]) == 0x08); // Little-endian: the lowest byte comes first.
  BOOST_TEST(std::to_integer<int>(wire[15]) == 0x01);
  BOOST_TEST(std::to_integer<int>(wire[48]) == 30);
  BOOST_TEST(std::to_integer<int>(wire[76]) == 15);
}

BOOST_AUTO_TEST_CASE(E13_another_wire_version_is_refused_with_both_printed) {
  const auto wire = with(encoded(tensor_header()), 4, std::uint16_t{wire_version + 1});
  const auto header = decode(wire, 30);
  BOOST_REQUIRE(!header);
  BOOST_TEST((header.error().code == errc::mismatch));
  BOOST_TEST(header.error().what.find(std::to_string(wire_version + 1)) != std::string::npos);
  BOOST_TEST(header.error().what.find("this build " + std::to_string(wire_version))
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(E15_hostile_headers_are_refused) {
  const auto good = encoded(tensor_header());
  BOOST_TEST((refusal(with(good, 0, 'X'), 30) == errc::contract_violation));
  BOOST_TEST((refusal(with(good, 6, std::uint8_t{0}), 30) == errc::contract_violation));
  BOOST_TEST((refusal(with(good, 7, std::uint8_t{3}), 30) == errc::contract_violation));
  BOOST_TEST((refusal(with(good, 7, std::uint8_t{255}), 30) == errc::contract_violation));
  BOOST_TEST((refusal(good, 29) == errc::contract_violation));
  BOOST_TEST((refusal(good, 0) == errc::contract_violation));
  BOOST_TEST((refusal(with(good, 40, std::uint32_t{0}), 30) == errc::contract_violation));
  BOOST_TEST((refusal(with(good, 44, std::uint32_t{6}), 30) == errc::contract_violation));
}

BOOST_AUTO_TEST_CASE(E15_dimensions_whose_product_wraps_are_refused) {
  // 2^31 x 2^31 x 4 bytes is 2^64: zero when it wraps.
  auto header = tensor_header();
  header.type = dtype::f32;
  header.rows = std::uint32_t{1} << 31;
  header.columns = std::uint32_t{1} << 31;
  header.payload_bytes = 0;
  BOOST_TEST((refusal(encoded(header), 0) == errc::contract_violation));
}

BOOST_AUTO_TEST_CASE(E15_a_header_of_another_size_is_refused) {
  const auto good = encoded(tensor_header());
  for (std::size_t size = 0; size < frame_header_bytes; ++size)
    BOOST_TEST(!decode(std::span(good).first(size), 30));
  std::vector<std::byte> longer(good.begin(), good.end());
  longer.push_back({});
  BOOST_TEST(!decode(longer, 30));
}

BOOST_AUTO_TEST_CASE(E15_100000_mutations_are_refused_or_consistent) {
  std::mt19937 random(15);
  const auto good = encoded(tensor_header());
  std::size_t accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    auto wire = good;
    for (auto changes = 1 + random() % 4; changes > 0; --changes)
      wire[random() % wire.size()] = static_cast<std::byte>(random());
    const auto header = decode(wire, 30);
    if (!header)
      continue;
    ++accepted;
    if (header->rows != 0 || header->columns != 0)
      BOOST_REQUIRE(header->rows * header->columns * size_of(header->type) == 30u);
    BOOST_REQUIRE(header->payload_bytes == 30u);
    BOOST_REQUIRE(header->kind != 0);
  }
  BOOST_TEST(accepted > 0u);
  BOOST_TEST(accepted < 100'000u);
}

BOOST_AUTO_TEST_CASE(a_digest_is_never_zero_and_differs_with_the_content) {
  std::vector<std::byte> content(100);
  const auto before = digest(content);
  content[99] = std::byte{1};
  BOOST_TEST(before != digest(content));
  BOOST_TEST(digest({}) != 0u);
}
