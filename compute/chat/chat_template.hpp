#pragma once
// The text that a model wants to read for a conversation, as its own Jinja template makes it.

#include "compute/chat/render_limits.hpp"
#include "compute/chat/value.hpp"
#include "config/result.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::compute::chat {

struct syntax_tree;

/// What a template is told beside the messages.
struct render_options {
  /// A list as the API has it: [{"type": "function", "function": {...}}, ...]. None: no tools.
  value tools = value::none();
  /// Whether the text ends where the model's answer begins.
  bool add_generation_prompt = true;
  /// More names that the template may know, "enable_thinking" for example. They win over all others
  /// but messages.
  dictionary variables;
  /// What strftime_now tells; without it, the time at which render() is called.
  std::optional<std::chrono::system_clock::time_point> now;
  render_limits limits;
};

/// One template. Immutable: any number of threads may render with it at once.
///
/// The reference is jinja2 3.1 as transformers.apply_chat_template sets it up: the immutable
/// sandbox with trim_blocks, lstrip_blocks, break and continue, tojson without HTML escapes,
/// raise_exception, strftime_now, and `generation` blocks, whose marks are not kept. The subset and
/// what differs are in docs/chat-templates.md.
///
/// A template is the work of a stranger: it cannot change what it is given, read anything else, or
/// run for ever. Nesting, work, texts and lists have limits; beyond them rendering ends with
/// overloaded.
class chat_template {
public:
  /// `name` is how messages call it: a file. invalid_model: a mistake in it. unsupported: a tag,
  /// filter or test outside of the subset. Messages are "<name>, line L, column C: ...".
  static result<std::unique_ptr<chat_template>> parse(std::string_view source, std::string name);

  ~chat_template();

  /// `messages` is a list of dictionaries as the API has them, {"role": ..., "content": ...};
  /// `constants` are names that the model's files give, bos_token for example.
  /// invalid_argument: the template refuses the messages (its raise_exception) or does not go with
  /// them. overloaded: a limit. unsupported: a method outside of the subset.
  result<std::string> render(const value& messages,
                             const render_options& options,
                             const dictionary& constants = {}) const;

private:
  chat_template(std::unique_ptr<const syntax_tree> tree, std::string name);

  std::unique_ptr<const syntax_tree> tree_;
  std::string name_;
};

} // namespace troupe::compute::chat
