#pragma once
// A state machine as a table: rows are phases, columns are inputs, a cell is the next phase, hold,
// drop or refuse. Tables are constexpr and checked when they are compiled; docs/states.md is
// printed from them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::actors {

enum class verdict : std::uint8_t {
  go,     ///< Enter the next phase and act.
  hold,   ///< Keep the input and offer it again after the next one that is handled.
  drop,   ///< The input has lost its meaning (late, or of a pass that was abandoned); forget it.
  refuse, ///< The sender broke the order; answer with not_now.
};

template <class Phase>
struct cell {
  verdict what = verdict::refuse;
  Phase next{};

  constexpr cell() = default;

  constexpr cell(Phase phase) : what(verdict::go), next(phase) {}

  constexpr cell(verdict v) : what(v) {}
};

/// Phase and Input are enums that count from 0; Names gives their spelling.
template <class Phase, std::size_t Phases, class Input, std::size_t Inputs>
struct phase_table {
  std::array<std::array<cell<Phase>, Inputs>, Phases> rows;
  std::array<std::string_view, Phases> phase_names;
  std::array<std::string_view, Inputs> input_names;

  constexpr const cell<Phase>& at(Phase phase, Input input) const {
    return rows[static_cast<std::size_t>(phase)][static_cast<std::size_t>(input)];
  }

  constexpr std::string_view name(Phase phase) const {
    return phase_names[static_cast<std::size_t>(phase)];
  }

  constexpr std::string_view name(Input input) const {
    return input_names[static_cast<std::size_t>(input)];
  }

  /// Whether every phase can be reached from phase 0.
  constexpr bool all_reachable() const {
    for (const bool reached : reachable_from(0))
      if (!reached)
        return false;
    return true;
  }

  /// Whether every phase but `last` has an input that leads to another phase.
  constexpr bool all_have_a_way_out(Phase last) const {
    for (std::size_t from = 0; from < Phases; ++from) {
      if (from == static_cast<std::size_t>(last))
        continue;
      bool out = false;
      for (const auto& c : rows[from])
        out = out || (c.what == verdict::go && static_cast<std::size_t>(c.next) != from);
      if (!out)
        return false;
    }
    return true;
  }

  /// Whether each input that some phase holds is taken, dropped or refused in a phase that can be
  /// reached from there: nothing is held for ever.
  constexpr bool all_holds_end() const {
    for (std::size_t from = 0; from < Phases; ++from)
      for (std::size_t input = 0; input < Inputs; ++input)
        if (rows[from][input].what == verdict::hold && !released_from(from, input))
          return false;
    return true;
  }

  /// The table as Markdown, for docs/states.md.
  std::string to_markdown() const {
    std::string text = "| phase |";
    for (const auto& input : input_names)
      text += " " + std::string{input} + " |";
    text += "\n|---|";
    for (std::size_t i = 0; i < Inputs; ++i)
      text += "---|";
    for (std::size_t p = 0; p < Phases; ++p) {
      text += "\n| **" + std::string{phase_names[p]} + "** |";
      for (const auto& c : rows[p])
        text += " " + cell_text(c, p) + " |";
    }
    return text + "\n";
  }

private:
  /// By phase; `start` itself is.
  constexpr std::array<bool, Phases> reachable_from(std::size_t start) const {
    std::array<bool, Phases> seen{};
    seen[start] = true;
    for (std::size_t round = 0; round < Phases; ++round)
      for (std::size_t from = 0; from < Phases; ++from)
        if (seen[from])
          for (const auto& c : rows[from])
            if (c.what == verdict::go)
              seen[static_cast<std::size_t>(c.next)] = true;
    return seen;
  }

  constexpr bool released_from(std::size_t start, std::size_t input) const {
    const auto seen = reachable_from(start);
    for (std::size_t p = 0; p < Phases; ++p)
      if (seen[p] && rows[p][input].what != verdict::hold)
        return true;
    return false;
  }

  std::string cell_text(const cell<Phase>& c, std::size_t row) const {
    switch (c.what) {
    case verdict::go:
      return static_cast<std::size_t>(c.next) == row ? "stay" : std::string{name(c.next)};
    case verdict::hold: return "*hold*";
    case verdict::drop: return "drop";
    case verdict::refuse: return "–";
    }
    return "";
  }
};

} // namespace troupe::actors
