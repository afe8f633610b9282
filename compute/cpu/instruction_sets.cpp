#include "compute/cpu/instruction_sets.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "compute/cpu/simd_targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/instruction_sets.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cctype>

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

std::int64_t this_target() {
  return HWY_TARGET;
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::compute::cpu {

HWY_EXPORT(this_target);

namespace {

bool dot_products_wanted = true;

std::string name_of(std::int64_t target) {
  std::string name = hwy::TargetName(target);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return name;
}

std::vector<std::int64_t> usable_targets() {
  // Bits are ordered best first; the lowest is the best.
  std::vector<std::int64_t> targets;
  const std::int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
  for (std::int64_t rest = all; rest != 0; rest &= rest - 1)
    targets.push_back(rest & -rest);
  return targets;
}

} // namespace

std::vector<std::string> usable_instruction_sets() {
  std::vector<std::string> names;
  for (auto target : usable_targets())
    names.push_back(name_of(target));
  return names;
}

std::string instruction_set() {
  return name_of(HWY_DYNAMIC_DISPATCH(this_target)());
}

result<void> use_instruction_set(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  std::int64_t chosen = 0;
  for (auto target : usable_targets())
    if (name_of(target) == name)
      chosen = target;
  if (chosen == 0 && !name.empty())
    return error{errc::invalid_argument,
                 fmt::format("instruction set {}: this machine and build have {}",
                             name,
                             fmt::join(usable_instruction_sets(), ", "))};
  hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return {};
}

bool has_dot_products() {
#if HWY_ARCH_X86
  static const bool found = __builtin_cpu_supports("avx512vnni") != 0;
#else
  constexpr bool found = false;
#endif
  return found && dot_products_wanted;
}

void use_dot_products(bool wanted) {
  dot_products_wanted = wanted;
}

} // namespace troupe::compute::cpu

#endif
