// Messages of the data road whose bytes were changed on the way: refused, or taken for another
// valid message; never an exception, a read outside of the payload, or memory for what was only
// announced. The sanitizers of the preset dev look at the same.

#include "actors/control/system.hpp"
#include "actors/wires/codec.hpp"
#include "config/cluster_file.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <random>

using namespace troupe;
using namespace troupe::actors;

namespace {

control_plane& control() {
  // Never ended: the framework's own statics may be gone when those of this file are.
  static auto* const plane = [] {
    const auto settings =
      parse_cluster_text("[model]\npath = \"demo\"\n[[node]]\nname = \"a\"\n", "c.toml");
    BOOST_REQUIRE(settings);
    auto started = control_plane::start(*settings);
    BOOST_REQUIRE(started);
    return started->release();
  }();
  return *plane;
}

step_plan some_plan() {
  step_plan plan;
  plan.epoch = epoch_id{3};
  plan.step = step_id{17};
  for (std::uint32_t i = 0; i < 3; ++i) {
    step_entry entry;
    entry.slot = static_cast<slot_id>(i);
    entry.position = 5 * i;
    entry.count = i + 1;
    entry.flags = step_entry::wants_output;
    entry.sampling.temperature = 0.7f;
    entry.pages = {page_id{4 * i}, page_id{4 * i + 1}};
    entry.history = {1, 2, 300 + i};
    plan.entries.push_back(entry);
  }
  plan.released = {slot_id{7}, slot_id{8}};
  return plan;
}

/// One frame of each kind, as it travels.
std::vector<transport::frame> recorded_frames() {
  auto& system = control().system();
  auto tensor = compute::buffer::allocate(2 * 8 * sizeof(float));
  BOOST_REQUIRE(tensor);
  std::memset(tensor->data(), 1, tensor->size());
  step_output output;
  output.epoch = epoch_id{3};
  output.step = step_id{17};
  output.choices.resize(3);
  const partition_input boundary{epoch_id{3}, step_id{17}, 2, 8, 0, 99};
  const slots_released released{epoch_id{3}, {slot_id{1}, slot_id{2}}};
  const state_manifest manifest{epoch_id{3}, 2, 4, {{slot_id{1}, {page_id{7}, page_id{2}}, 40}}};
  const state_page page{epoch_id{3}, page_id{7}, 2, 4};
  const state_held held{epoch_id{3}, rank_id{1}, {{slot_id{1}, 40, 3, 40}}};
  std::vector<transport::frame> frames;
  for (const auto& message : {caf::make_message(step_tokens{some_plan(), {1, 2, 3, 4, 5, 6}}),
                              caf::make_message(step_rows{some_plan()}),
                              caf::make_message(released),
                              caf::make_message(boundary, *tensor),
                              caf::make_message(output),
                              caf::make_message(rows_again{some_plan()}),
                              caf::make_message(manifest),
                              caf::make_message(page, *tensor),
                              caf::make_message(held)}) {
    auto made = encode_message(system, message.content());
    BOOST_REQUIRE(made);
    frames.push_back(std::move(*made));
  }
  return frames;
}

using bytes = std::vector<std::byte>;

void overwrite(bytes& content, std::size_t at, std::uint64_t value, std::size_t count) {
  std::memcpy(content.data() + at, &value, std::min(count, content.size() - at));
}

/// One change, of the kinds that break readers: a bit, a byte, a huge number, a cut, an insertion.
void mutate(bytes& content, std::mt19937_64& random) {
  constexpr std::uint64_t huge[]{0x8000'0000'0000'0000, ~0ull, 0x8000'0000, 0xffff'ffff, 0};
  const auto at = content.empty() ? 0 : random() % content.size();
  switch (random() % 6) {
  case 0:
    if (!content.empty())
      content[at] ^= std::byte{1} << (random() % 8);
    break;
  case 1:
    if (!content.empty())
      content[at] = static_cast<std::byte>(random());
    break;
  case 2:
    if (!content.empty())
      overwrite(content, at, huge[random() % 5], 8);
    break;
  case 3: content.resize(at); break;
  case 4:
    content.insert(content.begin() + static_cast<long>(at), 1 + random() % 9, std::byte{255});
    break;
  default: // A number of seven bits each, as lengths are written: 2^63 and more.
    content.insert(content.begin() + static_cast<long>(at), 9, std::byte{0x80});
    break;
  }
}

transport::frame damaged(const transport::frame& original, std::mt19937_64& random) {
  bytes content(original.payload.data(), original.payload.data() + original.payload.size());
  for (auto changes = 1 + random() % 4; changes > 0; --changes)
    mutate(content, random);
  auto made = original;
  auto payload = compute::buffer::allocate(content.size());
  if (payload && !content.empty())
    std::memcpy(payload->data(), content.data(), content.size());
  made.payload = payload ? std::move(*payload) : compute::buffer{};
  if (random() % 8 == 0) // A payload under the name of another message.
    made.header.kind = static_cast<std::uint8_t>(random() % 32);
  made.header.payload_bytes = made.payload.size();
  return made;
}

} // namespace

BOOST_AUTO_TEST_CASE(messages_are_read_as_they_were_written) {
  auto frames = recorded_frames();
  for (auto& one : frames) {
    const auto read = decode_message(control().system(), transport::frame{one});
    BOOST_REQUIRE(read);
    const auto again = encode_message(control().system(), read->content());
    BOOST_REQUIRE(again);
    BOOST_REQUIRE(again->payload.size() == one.payload.size());
    BOOST_TEST(std::memcmp(again->payload.data(), one.payload.data(), one.payload.size()) == 0);
  }
}

BOOST_AUTO_TEST_CASE(E15_100000_mutations_of_messages_are_refused_or_valid) {
  const auto frames = recorded_frames();
  std::mt19937_64 random{20};
  std::size_t refused = 0;
  std::size_t taken = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto read =
      decode_message(control().system(), damaged(frames[random() % frames.size()], random));
    if (!read) {
      BOOST_REQUIRE((read.error().code == errc::contract_violation));
      ++refused;
      continue;
    }
    // What was taken for a message can be written again: it is one.
    BOOST_REQUIRE(encode_message(control().system(), read->content()));
    ++taken;
  }
  BOOST_TEST_MESSAGE(refused << " refused, " << taken << " valid");
  BOOST_TEST(refused > 10'000u);
  BOOST_TEST(taken > 1'000u);
}

BOOST_AUTO_TEST_CASE(E13_a_message_with_more_fields_than_ours_is_refused) {
  for (const auto& one : recorded_frames()) {
    if (one.header.rows != 0)
      continue; // A tensor has no fields.
    auto payload = compute::buffer::allocate(one.payload.size() + 4);
    BOOST_REQUIRE(payload);
    std::memcpy(payload->data(), one.payload.data(), one.payload.size());
    std::memset(payload->data() + one.payload.size(), 0, 4);
    auto longer = one;
    longer.payload = std::move(*payload);
    const auto read = decode_message(control().system(), std::move(longer));
    BOOST_REQUIRE(!read);
    BOOST_TEST(read.error().what.find("after its message") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(E13_a_message_of_an_unknown_kind_is_refused_by_its_number) {
  auto unknown = recorded_frames()[0];
  unknown.header.kind = 99;
  const auto read = decode_message(control().system(), std::move(unknown));
  BOOST_REQUIRE(!read);
  BOOST_TEST(read.error().what.find("unknown kind 99") != std::string::npos);
}
