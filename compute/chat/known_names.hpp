#pragma once
// The filters and tests of the subset, by name: the parser refuses others before anything runs.

#include <string>
#include <string_view>

namespace troupe::compute::chat {

bool is_filter(std::string_view name) noexcept;
bool is_test(std::string_view name) noexcept;

/// All of them with ", " between.
std::string filter_names();
std::string test_names();

} // namespace troupe::compute::chat
