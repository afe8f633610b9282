#include "config/fault.hpp"
#include "config/setting_rows.hpp"

namespace troupe {

namespace {

constexpr double many = 1 << 30;
constexpr double day_ms = 86'400'000;

} // namespace

std::vector<setting> rows(fault_settings& s) {
  return {
    {"what",
     choice{&s.what, fault_action_names()},
     "What goes wrong. kill ends the process (SIGKILL); stop stands the rank's thread still, or "
     "the "
     "whole process of a node (SIGSTOP); slow makes layers take `factor` times as long. drop, "
     "delay, "
     "duplicate, reorder, truncate and corrupt meet a frame; cut takes all frames of a link. "
     "refuse_allocation, nan, wrong_length, wrong_operation, fail_collective and fail_transport "
     "meet "
     "one call of the device, the tensor group or the wires.",
     {},
     true},
    {"where",
     &s.where,
     "\"rank 1\", \"node b\", \"conductor\"; for frames also a link: \"rank 0 -> rank 1\", \"rank "
     "0 <-> rank 1\", \"rank 1 -> conductor\". \"any\" and \"any link\" choose by seed."},
    {"when",
     &s.when,
     "Counted from the start of the rank, or from `troupe inject`, and never by a clock: \"step "
     "20\", \"step 20 layer 3\", \"message 7\" (of the link, or sent by the rank), \"call 3\", "
     "\"phase leaving\" or \"phase joining 2\" (the second time), \"load\" or \"load 50\" "
     "(percent)."},
    {"times",
     &s.times,
     "How often it happens, from that moment on. It is kept when a process dies of it, so that "
     "once is once.",
     {1, many}},
    {"steps",
     &s.steps,
     "How many steps a stop, a slow spell or a cut lasts. 0 is for good. A stopped rank counts no "
     "steps: there it is so many times the mean time of its steps.",
     {0, many}},
    {"ms", &s.ms, "How late a delayed frame leaves, with those behind it.", {1, day_ms}},
    {"factor", &s.factor, "How many times as long a slow rank takes.", {1, 1e6}},
    {"length",
     &s.length,
     "How many elements a collective of n gets from this rank with wrong_length: \"n-2\", \"n+2\", "
     "\"10n\"."},
    {"seed",
     &s.seed,
     "Chooses what \"any\" leaves open, the bit that flips and the row that is not a number."},
  };
}

} // namespace troupe
