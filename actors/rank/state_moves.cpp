#include "actors/rank/state_moves.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::actors {

namespace {

/// Layers of one page that travel in one frame take about so much.
constexpr std::size_t frame_bytes = 4 << 20;

range common(const range& a, const range& b) {
  const auto begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// Pages that hold positions of these sequences.
std::set<page_id> used_pages(const std::vector<moved_slot>& slots) {
  std::set<page_id> used;
  for (const auto& slot : slots)
    used.insert(slot.pages.begin(),
                slot.pages.begin() + static_cast<std::ptrdiff_t>(compute::pages_for(slot.length)));
  return used;
}

} // namespace

// -- outbox ---------------------------------------------------------------------------------------

state_outbox::state_outbox(epoch_id epoch,
                           const compute::kv_cache& cache,
                           range units,
                           std::vector<moved_slot> slots)
  : epoch_(epoch), cache_(cache), units_(units), slots_(std::move(slots)) {}

void state_outbox::add(const state_move& move) {
  const range units = common(units_, {move.first_unit, move.last_unit});
  moves_.push_back({move.to, units, std::nullopt});
  left_.push_back(moves_.back());
  const auto most = std::max<std::size_t>(1, frame_bytes / cache_.page_bytes(1));
  for (const auto page : used_pages(slots_))
    for (auto first = units.begin; first < units.end; first += most)
      left_.push_back({move.to, {first, std::min(first + most, units.end)}, page});
}

std::size_t state_outbox::positions() const {
  std::size_t sum = 0;
  for (const auto& slot : slots_)
    sum += slot.length;
  return sum;
}

void state_outbox::give_up() {
  slots_.clear();
  left_.assign(moves_.begin(), moves_.end());
}

result<std::optional<state_outbox::item>> state_outbox::next() {
  if (left_.empty())
    return std::optional<item>{};
  const auto due = left_.front();
  const auto first = static_cast<std::uint32_t>(due.units.begin);
  const auto last = static_cast<std::uint32_t>(due.units.end);
  item made{due.to, state_manifest{epoch_, first, last, slots_}};
  if (due.page) {
    auto bytes = compute::buffer::allocate(cache_.page_bytes(due.units.size()));
    if (!bytes)
      return bytes.error();
    cache_.read_page(*due.page,
                     {due.units.begin - units_.begin, due.units.end - units_.begin},
                     {bytes->data(), bytes->size()});
    made.message = page_of{{epoch_, *due.page, first, last}, *std::move(bytes)};
  }
  left_.pop_front();
  return std::optional{std::move(made)};
}

// -- intake ---------------------------------------------------------------------------------------

range state_intake::local(const range& units) const {
  return {units.begin - units_.begin, units.end - units_.begin};
}

void state_intake::expect(const range& units) {
  parts_.push_back({common(units_, units), false, {}, {}, 0});
}

result<void> state_intake::take(const former_state& former) {
  const auto units = common(units_, former.units);
  if (units.empty())
    return {};
  part own{units, true, {}, {}, 0};
  for (const auto& slot : former.slots)
    if (std::all_of(slot.pages.begin(), slot.pages.end(), [this](page_id page) {
          return number(page) < cache_.shape().pages;
        }))
      own.slots.push_back(slot);
  auto bytes = compute::buffer::allocate(cache_.page_bytes(units.size()));
  if (!bytes)
    return bytes.error();
  const std::span<std::byte> page_bytes{bytes->data(), bytes->size()};
  for (const auto page : used_pages(own.slots)) {
    former.state.cache->read_page(
      page, {units.begin - former.units.begin, units.end - former.units.begin}, page_bytes);
    cache_.write_page(page, local(units), page_bytes);
  }
  parts_.push_back(std::move(own));
  return {};
}

/// The part that these layers belong to.
result<state_intake::part*> state_intake::find(const range& units) {
  for (auto& one : parts_)
    if (units.begin < units.end && units.begin >= one.units.begin && units.end <= one.units.end)
      return &one;
  return error{errc::contract_violation,
               fmt::format("the state of layers [{}, {}) came, which nobody was to send",
                           units.begin,
                           units.end)};
}

result<void> state_intake::take(const state_manifest& manifest) {
  const range units{manifest.first_unit, manifest.last_unit};
  auto found = find(units);
  if (!found)
    return found.error();
  auto& one = **found;
  const bool takes_back = one.told && manifest.slots.empty();
  if ((one.told && !takes_back) || units != one.units)
    return error{errc::contract_violation,
                 fmt::format("the state of layers [{}, {}) is announced {}",
                             units.begin,
                             units.end,
                             one.told ? "twice" : "in part")};
  for (const auto& slot : manifest.slots) {
    if (slot.pages.size() < compute::pages_for(slot.length))
      return error{errc::contract_violation,
                   fmt::format("slot {} has {} positions on {} pages",
                               number(slot.slot),
                               slot.length,
                               slot.pages.size())};
    if (std::all_of(slot.pages.begin(), slot.pages.end(), [this](page_id page) {
          return number(page) < cache_.shape().pages;
        }))
      one.slots.push_back(slot);
  }
  if (takes_back)
    one.slots.clear();
  one.told = true;
  one.pages = used_pages(manifest.slots);
  one.missing = one.pages.size() * units.size();
  return {};
}

result<void> state_intake::take(const state_page& what, const compute::buffer& bytes) {
  const range units{what.first_unit, what.last_unit};
  auto found = find(units);
  if (!found)
    return found.error();
  auto& one = **found;
  if (!one.told || !one.pages.contains(what.page) || units.size() > one.missing
      || bytes.size() != cache_.page_bytes(units.size()))
    return error{errc::contract_violation,
                 fmt::format("page {} of layers [{}, {}) came with {} bytes where {} were due",
                             number(what.page),
                             units.begin,
                             units.end,
                             bytes.size(),
                             cache_.page_bytes(units.size()))};
  one.missing -= units.size();
  if (number(what.page) < cache_.shape().pages)
    cache_.write_page(what.page, local(units), {bytes.data(), bytes.size()});
  return {};
}

bool state_intake::complete() const {
  return std::all_of(
    parts_.begin(), parts_.end(), [](const part& one) { return one.told && one.missing == 0; });
}

std::vector<moved_slot> state_intake::slots() const {
  std::size_t covered = 0;
  for (const auto& one : parts_)
    covered += one.units.size();
  if (covered != units_.size() || !complete())
    return {};
  std::vector<moved_slot> whole;
  for (auto slot : parts_.front().slots) {
    const bool everywhere = std::all_of(parts_.begin(), parts_.end(), [&](const part& one) {
      const auto found = std::find_if(one.slots.begin(), one.slots.end(), [&](const auto& other) {
        return other.slot == slot.slot && other.pages == slot.pages;
      });
      if (found != one.slots.end())
        slot.length = std::min(slot.length, found->length);
      return found != one.slots.end();
    });
    if (everywhere)
      whole.push_back(slot);
  }
  return whole;
}

} // namespace troupe::actors
