#pragma once
// The operations of compute/device.hpp on CPUs, each in the file of its name. Contracts and shapes
// are those of the device; they are called from the rank's thread.

#include "compute/cpu/execution.hpp"
#include "compute/cpu/kv_pages.hpp"
#include "compute/cpu/panels.hpp"
#include "compute/cpu/rope_angles.hpp"
#include "compute/device.hpp"

namespace troupe::compute::cpu {

void embed(
  execution& on, const matrix& weights, std::span<const token_id> ids, token_id first, tensor out);

void matmul(execution& on,
            const panel_matrix& weights,
            tensor x,
            std::span<const float> bias,
            tensor out,
            tensor added);

/// Each group of `width` columns of each row is normalised by itself, with one weight of `width`.
void rms_norm(
  execution& on, tensor x, std::size_t width, std::span<const float> weight, float eps, tensor out);

void rotate(execution& on, tensor x, std::size_t head_dim, const rope_angles& angles);

void attention(execution& on,
               const kv_pages& cache,
               const attention_call& call,
               const batch& rows,
               tensor queries,
               tensor out);

void silu_mul(execution& on, tensor gate, tensor up, tensor out);
void add(execution& on, tensor x, tensor out);
void find_finite(execution& on, tensor x, std::span<bool> finite);

} // namespace troupe::compute::cpu
