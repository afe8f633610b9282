#pragma once
// State that moves when a plan changes: what a rank held of running sequences goes, layer by layer
// and page by page, to the ranks that hold these layers now, itself among them. A rank gives away
// what an outbox lists and takes in what its intake expects; both are books without wires, used by
// the rank's thread.
//
// State that does not arrive is no fault: it is computed again, as after any other loss.

#include "actors/messages/membership.hpp"
#include "actors/messages/steps.hpp"
#include "actors/rank/boundary_log.hpp"
#include "compute/device.hpp"
#include "compute/partition.hpp"
#include "config/result.hpp"
#include "config/topology.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

namespace troupe::actors {

/// What a rank held when it was told to load something else.
struct former_state {
  range units;
  std::size_t tensor = 0;
  std::size_t pages = 0; ///< Of its cache.
  compute::partition_state state;
  std::vector<moved_slot> slots;
  std::optional<boundary_log>
    rows; ///< That it sent behind its last layer, and of each sequence ...
  std::map<slot_id, range> rows_of; ///< ... the positions.
};

/// What a rank has to send.
class state_outbox {
public:
  struct page_of {
    state_page what;
    compute::buffer bytes;
  };

  struct item {
    rank_id to{};
    std::variant<state_manifest, page_of> message;
  };

  /// `cache` holds `units`; it outlives the outbox.
  state_outbox(epoch_id epoch,
               const compute::kv_cache& cache,
               range units,
               std::vector<moved_slot> slots);

  void add(const state_move& move);

  bool empty() const noexcept { return left_.empty(); }

  /// Positions of all sequences.
  std::size_t positions() const;

  /// What has not been sent stays here; those who wait for it are told.
  void give_up();

  /// The next message; nothing when all were taken. Error: out_of_memory.
  result<std::optional<item>> next();

private:
  struct piece {
    rank_id to{};
    range units;
    std::optional<page_id> page; ///< Nothing: the manifest.
  };

  /// Whom it has told what would come, and of which layers.
  std::vector<piece> moves_;

  epoch_id epoch_;
  const compute::kv_cache& cache_;
  range units_;
  std::vector<moved_slot> slots_;
  std::deque<piece> left_;
};

/// What a rank gets, from itself and from others.
class state_intake {
public:
  /// `cache` holds `units`; it outlives the intake.
  state_intake(compute::kv_cache& cache, range units) : cache_(cache), units_(units) {}

  /// These layers will come from another rank.
  void expect(const range& units);

  /// Copies what both hold.
  result<void> take(const former_state& former);

  /// A second manifest without sequences takes the first one back: nothing more comes. Errors:
  /// contract_violation, layers or pages that this rank does not hold or does not expect.
  result<void> take(const state_manifest& manifest);
  result<void> take(const state_page& what, const compute::buffer& bytes);

  bool complete() const;

  /// The sequences that every layer has, as far as all of them have it.
  std::vector<moved_slot> slots() const;

private:
  struct part {
    range units;
    bool told = false; ///< Its manifest is here.
    std::vector<moved_slot> slots;
    std::set<page_id> pages;
    std::size_t missing = 0; ///< Pages times layers.
  };

  result<part*> find(const range& units);
  range local(const range& units) const;

  compute::kv_cache& cache_;
  range units_;
  std::vector<part> parts_;
};

} // namespace troupe::actors
