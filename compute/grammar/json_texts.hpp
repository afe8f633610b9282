#pragma once
// The texts of JSON's values as pieces of a grammar.

#include "compute/grammar/grammar_builder.hpp"

#include <cstddef>
#include <optional>

namespace troupe::compute {

/// A text in quotes of `least` to `most` characters; no `most`: of any length. Characters are UTF-8
/// or escapes of JSON, no surrogates among them. `one_character` is the rule that
/// add_character_rule() made.
void add_string(grammar_builder& to,
                grammar::node_id from,
                grammar::node_id end,
                grammar::node_id one_character,
                std::size_t least,
                std::optional<std::size_t> most);

/// One character of a text in quotes. Returns where the rule starts.
grammar::node_id add_character_rule(grammar_builder& to);

/// A whole number of at most 15 digits, which doubles hold exactly.
void add_integer(grammar_builder& to, grammar::node_id from, grammar::node_id end);

/// ... with at most 15 digits behind the point and an exponent of at most two, if there are any.
void add_number(grammar_builder& to, grammar::node_id from, grammar::node_id end);

/// A comma, or a colon, with one space behind it or none.
void add_separator(grammar_builder& to,
                   grammar::node_id from,
                   char separator,
                   grammar::node_id end);

/// Any value at all. Returns where the rule starts, and where that of any object does.
struct any_rules {
  grammar::node_id value, object, array;
};

any_rules add_any_rules(grammar_builder& to, grammar::node_id one_character);

} // namespace troupe::compute
