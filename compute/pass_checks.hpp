#pragma once
// What the driver of a partition checks before a pass begins. Contract rules 16, 17, 22 and 25.

#include "compute/partition.hpp"
#include "config/result.hpp"

namespace troupe::compute {

/// The rows follow each other without gaps, and every position lies inside of the context.
result<void> check_rows(const batch& rows, std::size_t context);

/// The form is legal for the record and has one token, or one hidden row, for each row; tokens are
/// entries of the vocabulary.
result<void> check_input(const partition_input& input,
                         std::size_t rows,
                         const partition_record& record,
                         const model_shape& shape);

/// The state has the expected layout, and the ordinal is the local one: 0. Never repaired.
result<void> check_state(const partition_state& state,
                         const state_layout& expected,
                         std::size_t first_state_ordinal);

/// Each sequence has pages for all of its positions, and the cache has those pages.
result<void> check_pages(const batch& rows, const kv_cache& cache);

} // namespace troupe::compute
