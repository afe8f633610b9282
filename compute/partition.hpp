#pragma once
// A partition: the layers that one rank owns, loaded, and the lifecycle of a forward pass on them.
//
//     begin -> enter -> forward_unit ... (ascending) -> leave -> finish
//
// The driver here owns validation, sequencing and output ownership; the family under architectures/
// owns what a layer means. Contract rules 13, 16-35. Any call out of order is contract_violation
// and leaves the state as it was; abandon() ends a pass at any point (rule 46).

#include "compute/batch.hpp"
#include "compute/candidates.hpp"
#include "compute/collective.hpp"
#include "compute/device.hpp"
#include "compute/model.hpp"
#include "compute/state_layout.hpp"
#include "compute/weights/held_weights.hpp"

#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

namespace troupe::compute {

/// The state of a partition: pages of attention memory with their layout.
struct partition_state {
  state_layout layout;
  std::unique_ptr<kv_cache> cache;
};

/// Rule 16: tokens only where the partition owns input; a hidden tensor is legal everywhere.
/// The hidden buffer holds [rows, hidden] f32.
struct token_input {
  std::span<const token_id> tokens; ///< One per row of the batch; read by begin() only.
};

struct hidden_input {
  buffer hidden;
};

using partition_input = std::variant<token_input, hidden_input>;

/// Rule 31: final logits or a boundary, never both.
/// Per output row, and the same on every member of the group.
struct final_output {
  buffer logits; ///< [rows without candidates, vocabulary] f32, in the order of the rows.
  std::vector<token_candidates> candidates; ///< Empty: the row has whole logits.
  std::vector<bool> finite;                 ///< Whether the hidden row and all logits are finite.
};

struct boundary_output {
  buffer hidden;            ///< [rows, hidden] f32.
  std::vector<bool> finite; ///< Per row.
};

using partition_output = std::variant<final_output, boundary_output>;

/// Progress of a load, for people: bytes of the partition that are packed, and of how many.
using load_progress = std::function<void(std::size_t done_bytes, std::size_t total_bytes)>;

struct load_report {
  std::size_t bytes_read = 0; ///< Weight bytes read from disk: those that the rank owns, no more,
                              ///< and did not hold already.
  std::size_t bytes_held = 0;
  std::vector<loaded_digest> digests;
};

class partition {
public:
  /// Loads what `record` owns onto the device. `group` is the rank's tensor-parallel group, of size
  /// record.tensor_size; it and the device outlive the partition. Calls back from this thread.
  /// `held`: weights of a former partition of this model on this device; what the record owns of
  /// them is taken over, the rest is let go before anything is loaded.
  static result<std::unique_ptr<partition>> load(std::shared_ptr<const model> source,
                                                 const partition_record& record,
                                                 held_types hold,
                                                 device& where,
                                                 collective& group,
                                                 const load_progress& progress,
                                                 held_weights held = {});

  virtual ~partition() = default;

  virtual const partition_record& record() const = 0;
  virtual const load_report& report() const = 0;

  /// For load() of the partition that follows.
  virtual const held_weights& weights() const = 0;

  /// The group may be replaced between passes, when an epoch brings a new one (same size).
  virtual void use_group(collective& group) = 0;

  /// The layout that this partition expects of its state (local slice, rule 11).
  virtual const state_layout& expected_state() const = 0;

  /// Allocates state of that layout with `pages` pages.
  virtual result<partition_state> make_state(std::size_t pages) = 0;

  /// Starts a pass. Checks the form of the input (rules 16-18), the layout of the state and the
  /// ordinal (rule 22: the local one, 0 for the first owned layer), the rows of the batch (pages
  /// given, positions inside of the context). On error no state was touched.
  virtual result<void> begin(const partition_input& input,
                             batch rows,
                             partition_state& state,
                             std::size_t first_state_ordinal) = 0;

  /// Enters the group of layers (rule 26), once per pass.
  virtual result<void> enter() = 0;

  /// The next global unit to run, or nothing when all owned units have run.
  virtual std::optional<std::size_t> next_unit() const = 0;

  /// Runs one unit; units ascend (rule 27).
  virtual result<void> forward_unit(std::size_t unit) = 0;

  /// Leaves the group after the last unit (rule 29).
  virtual result<void> leave() = 0;

  /// Ends the pass (rule 31). owns_output must be what the record says (rule 35).
  virtual result<partition_output> finish(bool owns_output) = 0;

  /// Ends a pass that will not finish. State written by it is beyond the watermark and is
  /// overwritten by the next pass over the same positions.
  virtual void abandon() noexcept = 0;
};

} // namespace troupe::compute
