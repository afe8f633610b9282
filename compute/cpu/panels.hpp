#pragma once
// Weights in the layouts of the CPU device.

#include "compute/cpu/execution.hpp"
#include "compute/device.hpp"

namespace troupe::compute::cpu {

/// Output features in a panel. A panel lies as [column][feature]: walking it in memory order is
/// walking the input features, and a vector holds neighbouring output features, so each output
/// element is one chain of multiply-adds over the input features whatever the vector's width.
inline constexpr std::size_t panel_width = 32;

/// A weight for matmul: panels one after the other, the last one filled up with zeros.
class panel_matrix final : public matrix {
public:
  panel_matrix(std::size_t rows, std::size_t columns, dtype held, buffer memory)
    : rows_(rows), columns_(columns), held_(held), memory_(std::move(memory)) {}

  std::size_t rows() const noexcept override { return rows_; }

  std::size_t columns() const noexcept override { return columns_; }

  dtype held() const noexcept override { return held_; }

  std::size_t bytes() const noexcept override { return memory_.size(); }

  std::size_t panels() const noexcept { return (rows_ + panel_width - 1) / panel_width; }

  std::byte* panel(std::size_t index) const noexcept {
    return memory_.data() + index * held_bytes(held_, panel_width, columns_);
  }

private:
  std::size_t rows_;
  std::size_t columns_;
  dtype held_;
  buffer memory_;
};

/// A weight for look-ups, used where it is stored.
class row_table final : public matrix {
public:
  explicit row_table(weight_source source) : source_(std::move(source)) {}

  std::size_t rows() const noexcept override { return source_.rows; }

  std::size_t columns() const noexcept override { return source_.columns; }

  dtype held() const noexcept override { return source_.stored; }

  std::size_t bytes() const noexcept override { return 0; } ///< The pages are the file's.

  const std::byte* row(std::size_t index) const noexcept {
    return source_.data + index * source_.stride * size_of(source_.stored);
  }

private:
  weight_source source_;
};

/// Packs on the whole team, slice by slice: each source is read once, in order, and shown to its
/// watcher. Errors: out_of_memory; invalid_model where a finite stored value is too large for
/// `hold`, naming source, row and column.
result<std::unique_ptr<panel_matrix>>
pack_panels(execution& on, std::span<const weight_source> sources, dtype hold);

} // namespace troupe::compute::cpu
