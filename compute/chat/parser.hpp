#pragma once
// Tokens to a tree.

#include "compute/chat/syntax.hpp"
#include "config/result.hpp"

#include <memory>
#include <string_view>

namespace troupe::compute::chat {

/// invalid_model: a mistake. unsupported: a tag, filter or test that is not part of the subset, by
/// name. Both say "line L, column C: ...".
result<std::unique_ptr<const syntax_tree>> parse_template(std::string_view source);

} // namespace troupe::compute::chat
