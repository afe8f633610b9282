#pragma once
// Which of the compiled instruction sets the kernels of this process use.

#include "config/result.hpp"

#include <string>
#include <vector>

namespace troupe::compute::cpu {

/// Names of those that this machine can run, best first: "avx3" (AVX-512), "avx2", "sse4",
/// "scalar".
std::vector<std::string> usable_instruction_sets();

/// The one in use.
std::string instruction_set();

/// Makes every kernel of the process use `name`, "" being the best again; for tests that compare
/// them. Not while a kernel runs. Error: invalid_argument with the names that would work.
result<void> use_instruction_set(const std::string& name);

/// Whether the processor adds up four 8-bit products in one instruction (AVX-512 VNNI), and may.
bool has_dot_products();

/// Makes the kernels do without; for tests that compare both. Not while a kernel runs.
void use_dot_products(bool wanted);

} // namespace troupe::compute::cpu
