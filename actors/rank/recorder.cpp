#include "actors/rank/recorder.hpp"

#include "actors/rank/rank_phases.hpp"
#include "actors/wires/codec.hpp"
#include "transport/transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>

namespace troupe::actors {

namespace {

std::uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::string name_kind(std::uint8_t kind) {
  switch (static_cast<message_kind>(kind)) {
  case message_kind::step_tokens: return "step_tokens";
  case message_kind::step_rows: return "step_rows";
  case message_kind::slots_released: return "slots_released";
  case message_kind::partition_input: return "partition_input";
  case message_kind::step_output: return "step_output";
  case message_kind::rows_again: return "rows_again";
  case message_kind::state_manifest: return "state_manifest";
  case message_kind::state_page: return "state_page";
  case message_kind::state_held: return "state_held";
  }
  if (kind == static_cast<std::uint8_t>(transport::frame_kind::collective))
    return "collective";
  return fmt::format("kind {}", kind);
}

std::string name_phase(std::uint8_t phase) {
  return phase < rank_phases.phase_names.size() ? std::string{rank_phases.phase_names[phase]}
                                                : fmt::format("phase {}", phase);
}

std::string describe(const record& done) {
  const auto frame = [&](std::string_view way) {
    return fmt::format("frame {} {}: {} {}, {} bytes",
                       way,
                       transport::name_peer(done.peer),
                       name_kind(done.detail),
                       done.number,
                       done.amount);
  };
  const auto operation = [&](std::string_view name, std::string_view state) {
    return fmt::format("{} {} with {} elements {}", name, done.number, done.amount, state);
  };
  switch (done.what) {
  case recorded::nothing: break;
  case recorded::phase: return "phase " + name_phase(done.detail);
  case recorded::step: return fmt::format("step begins with {} rows", done.amount);
  case recorded::layer: return fmt::format("layer {}", done.number);
  case recorded::frame_in: return frame("from");
  case recorded::frame_out: return frame("to");
  case recorded::reduce_begun: return operation("all_reduce", "begins");
  case recorded::reduce_ended: return operation("all_reduce", "ends");
  case recorded::gather_begun: return operation("all_gather", "begins");
  case recorded::gather_ended: return operation("all_gather", "ends");
  case recorded::barrier_begun: return fmt::format("barrier {} begins", done.number);
  case recorded::barrier_ended: return fmt::format("barrier {} ends", done.number);
  case recorded::reduction_failed: return fmt::format("operation {} fails", done.number);
  }
  return "nothing";
}

} // namespace

void recorder::note(const record& done) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  const auto index = next_.load(relaxed);
  auto& to = ring_[index % capacity];
  to.at_ns.store(now_ns(), relaxed);
  to.what.store(static_cast<std::uint64_t>(done.what) | std::uint64_t{done.detail} << 8
                  | std::uint64_t{done.peer} << 32,
                relaxed);
  to.epoch.store(epoch_, relaxed);
  to.step.store(step_, relaxed);
  to.number.store(done.number, relaxed);
  to.amount.store(done.amount, relaxed);
  next_.store(index + 1, std::memory_order_release);
}

std::string recorder::text() const {
  constexpr auto relaxed = std::memory_order_relaxed;
  const auto end = next_.load(std::memory_order_acquire);
  const auto now = now_ns();
  std::string lines;
  for (auto i = end - std::min<std::uint64_t>(end, capacity); i < end; ++i) {
    const auto& from = ring_[i % capacity];
    const auto what = from.what.load(relaxed);
    record done;
    done.what = static_cast<recorded>(what & 0xff);
    done.detail = static_cast<std::uint8_t>(what >> 8);
    done.peer = static_cast<std::uint32_t>(what >> 32);
    done.number = from.number.load(relaxed);
    done.amount = from.amount.load(relaxed);
    const auto at = from.at_ns.load(relaxed);
    lines += fmt::format("{:>12.3f} ms  epoch {} step {}: {}\n",
                         -static_cast<double>(now - std::min(now, at)) / 1e6,
                         from.epoch.load(relaxed),
                         from.step.load(relaxed),
                         describe(done));
  }
  return lines;
}

result<void> recorder::write(const std::filesystem::path& file, const std::string& title) const {
  std::ofstream out{file};
  out << title << "\n" << text();
  out.flush();
  if (!out)
    return error{errc::io_error, fmt::format("{} cannot be written", file.string())};
  return {};
}

} // namespace troupe::actors
