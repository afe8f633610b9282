#pragma once
// A conversation as the tokens of one model: its template, then its tokenizer.

#include "compute/chat/chat_template.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "config/ids.hpp"
#include "config/result.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::compute::chat {

/// The chat templates of one model folder. Immutable: any number of threads may use it at once.
///
/// They are read from chat_template.jinja and additional_chat_templates/NAME.jinja, else from
/// chat_template.json, else from "chat_template" of tokenizer_config.json: a text, or a list of
/// {"name": ..., "template": ...}.
class chat_format {
public:
  /// not_found: the folder has no template: a base model; the message says where it was sought.
  /// invalid_model, unsupported: a damaged file, or a template that cannot be used.
  static result<std::unique_ptr<chat_format>> open(const std::filesystem::path& model_folder);

  /// With the template "tool_use" if the model has one and there are tools, else with "default".
  /// Errors are those of chat_template::render.
  result<std::string> render(const value& messages, const render_options& options) const;

  /// The tokens of the rendered text. Exactly one start token stands at the front if the tokenizer
  /// puts one there or the template does, whichever does and also if both do; none if neither does.
  /// No end token is added. `words` is the tokenizer of the same folder.
  result<std::vector<token_id>>
  prompt(const tokenizer& words, const value& messages, const render_options& options) const;

  /// Of the templates: "default", "tool_use" ...
  std::vector<std::string> names() const;

private:
  struct named_template {
    std::string name;
    std::unique_ptr<chat_template> body;
  };

  const chat_template* find(std::string_view name) const;

  std::vector<named_template> templates_;
  dictionary constants_; ///< bos_token and its like.
};

/// The tokens of a text that a template made, with the start token as chat_format::prompt has it.
result<std::vector<token_id>> encode_prompt(const tokenizer& words, std::string_view text);

} // namespace troupe::compute::chat
