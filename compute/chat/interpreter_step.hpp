#pragma once
// One node more on the stack of an interpreter.

#include "compute/chat/interpreter.hpp"

#include <fmt/format.h>

namespace troupe::compute::chat {

class interpreter::step {
public:
  step(interpreter& owner, position at) : owner_(owner) {
    if (++owner_.depth_ > owner_.run_.limits().depth)
      owner_.run_.fail(
        at,
        fmt::format("more than {} expressions, blocks and macros inside of each other",
                    owner_.run_.limits().depth),
        errc::overloaded);
    runs_ = owner_.run_.spend(at, run::node_cost);
  }

  ~step() { --owner_.depth_; }

  step(const step&) = delete;
  step& operator=(const step&) = delete;

  explicit operator bool() const noexcept { return runs_; }

private:
  interpreter& owner_;
  bool runs_ = false;
};

} // namespace troupe::compute::chat
