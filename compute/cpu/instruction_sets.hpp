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

} // namespace troupe::compute::cpu
