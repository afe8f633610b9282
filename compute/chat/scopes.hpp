#pragma once
// The names that a place in a template sees: its own scope, those around it, and the template's.

#include "compute/chat/value.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute::chat {

/// A stack of frames. The first is the template's; macros see that one and what was visible where
/// they were written, but nothing of their caller.
class scopes {
public:
  using frame = std::map<std::string, value, std::less<>>;

  scopes() : frames_(1) {}

  /// Null: no such name.
  const value* find(std::string_view name) const {
    for (auto at = frames_.size(); at-- > walls_.back();)
      if (auto found = frames_[at].find(name); found != frames_[at].end())
        return &found->second;
    auto found = frames_[0].find(name);
    return found != frames_[0].end() ? &found->second : nullptr;
  }

  /// In the innermost frame.
  void set(const std::string& name, value what) { frames_.back()[name] = std::move(what); }

  void push() { frames_.emplace_back(); }

  void pop() { frames_.pop_back(); }

  /// A macro's frame, which hides those of its caller.
  void push_wall(frame closure) {
    walls_.push_back(frames_.size());
    frames_.push_back(std::move(closure));
  }

  void pop_wall() {
    frames_.pop_back();
    walls_.pop_back();
  }

  /// All that is visible here, but for the template's own frame, which is always seen.
  frame visible() const {
    frame all;
    for (auto at = frames_.size(); at-- > std::max<std::size_t>(walls_.back(), 1);)
      all.insert(frames_[at].begin(), frames_[at].end()); // inner names win
    return all;
  }

private:
  std::vector<frame> frames_;
  std::vector<std::size_t> walls_ = {0};
};

} // namespace troupe::compute::chat
