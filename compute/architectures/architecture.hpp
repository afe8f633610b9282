#pragma once
// The seam between the driver of a partition and what a family makes of it. The driver
// (compute/partition.cpp) owns validation, sequencing and output ownership; an architecture owns
// the meaning: which parameters there are, how they are cut, what travels, what a unit computes.
//
// An `architecture` is a family applied to one config: a description without weights.
// Its load() gives a `partition_body`: the part that one rank owns, with its weights on a device.

#include "compute/architectures/graph.hpp"
#include "compute/architectures/parameters.hpp"
#include "compute/architectures/state_plan.hpp"
#include "compute/batch.hpp"
#include "compute/boundary.hpp"
#include "compute/collective.hpp"
#include "compute/device.hpp"
#include "compute/model.hpp"
#include "compute/partition.hpp"
#include "compute/weights/digest.hpp"
#include "config/result.hpp"

#include <memory>
#include <string_view>
#include <vector>

namespace troupe::compute {

class shard_loader;

/// What a pass carries from begin to finish (rule 21). The driver owns it and keeps the input
/// alive.
struct forward_context {
  const batch& rows;
  partition_state& state;
  collective& group; ///< The tensor-parallel peers of this stage.
};

/// The loaded half of the seam, one per partition. Called by the driver only, in the order
/// begin_partition, enter_group, forward_unit (ascending), leave_group, finish_partition, from the
/// rank's thread; a pass may stop anywhere, begin_partition starts afresh. Hidden values are
/// [rows, hidden] views of the body's memory or of the input, valid until the next begin.
class partition_body {
public:
  virtual ~partition_body() = default;

  /// Tokens become their embeddings (rule 18: without an embedding that is an error); a hidden
  /// input is taken as it is. No state is touched.
  virtual result<tensor> begin_partition(const partition_input& input,
                                         forward_context& context) = 0;

  /// Rule 26; by default the hidden value enters as it is.
  virtual result<tensor> enter_group(tensor hidden, forward_context&) { return hidden; }

  /// Unit `ordinal` (0 for the first owned one), which keeps its state in that segment (rule 27).
  virtual result<tensor>
  forward_unit(std::size_t ordinal, tensor hidden, forward_context& context) = 0;

  /// Rule 29; by default the hidden value leaves as it is.
  virtual result<tensor> leave_group(tensor hidden, forward_context&) { return hidden; }

  /// Rule 31: final norm and head on the rows that want output, or the boundary.
  virtual result<partition_output>
  finish_partition(tensor hidden, forward_context& context, bool owns_output) = 0;
};

/// The describing half of the seam. Immutable; any thread may read it.
class architecture {
public:
  virtual ~architecture() = default;

  virtual const model_shape& shape() const = 0;

  /// Rule 3: groups, units and their paths.
  virtual const graph& layout() const = 0;

  /// Rule 7: the authoritative set.
  virtual const std::vector<parameter>& parameters() const = 0;

  /// Rule 12: derived from the normalised config.
  virtual const boundary_schema& boundary() const = 0;

  /// Rule 19: which groups and roles a partition with this record owns and stores.
  virtual ownership owned_by(const partition_record& record) const = 0;

  /// Rule 9: the complete plan, for ranks that keep so many key/value heads.
  virtual state_plan state(std::size_t local_kv_heads) const = 0;

  /// How the parameter is kept in the memory of a partition with this record.
  enum class holding : std::uint8_t {
    packed, ///< Converted and laid out for matmul.
    table,  ///< Looked up row by row, where it is stored.
    vector, ///< As f32.
  };
  virtual holding held_as(const parameter& which, const partition_record& record) const = 0;

  /// Whether exporters leave this name in files although it is no parameter.
  virtual bool is_known_extra(std::string_view name) const = 0;

  /// Adds everything that results depend on, other than weights.
  virtual void describe_to(digest_stream& digest) const = 0;

  /// Loads what a partition owns. `loader` was made for the same record.
  virtual result<std::unique_ptr<partition_body>>
  load(const partition_record& record, shard_loader& loader, device& where) const = 0;
};

} // namespace troupe::compute
