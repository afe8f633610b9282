#include "compute/chat/chat_template.hpp"

#include "compute/chat/interpreter.hpp"
#include "compute/chat/parser.hpp"

#include <fmt/format.h>

namespace troupe::compute::chat {

namespace {

/// Larger than any that is known by a factor of 50.
constexpr std::size_t most_source_bytes = std::size_t{1} << 20;

error named(const std::string& name, const error& cause) {
  return {cause.code, fmt::format("{}, {}", name, cause.what)};
}

} // namespace

chat_template::chat_template(std::unique_ptr<const syntax_tree> tree, std::string name)
  : tree_(std::move(tree)), name_(std::move(name)) {}

chat_template::~chat_template() = default;

result<std::unique_ptr<chat_template>> chat_template::parse(std::string_view source,
                                                            std::string name) {
  if (source.size() > most_source_bytes)
    return error{
      errc::unsupported,
      fmt::format(
        "{} has {} bytes; chat templates have at most {}", name, source.size(), most_source_bytes)};
  auto tree = parse_template(source);
  if (!tree)
    return named(name, tree.error());
  return std::unique_ptr<chat_template>(new chat_template(std::move(*tree), std::move(name)));
}

result<std::string> chat_template::render(const value& messages,
                                          const render_options& options,
                                          const dictionary& constants) const {
  dictionary variables = constants;
  variables.set("tools", options.tools);
  variables.set("documents", value::none());
  variables.set("add_generation_prompt", options.add_generation_prompt);
  for (const auto& [key, content] : options.variables.entries())
    variables.set(key, content);
  variables.set("messages", messages);
  run running(options.limits, options.now.value_or(std::chrono::system_clock::now()));
  auto text = interpreter(*tree_, running, variables).render();
  if (!text)
    return named(name_, text.error());
  return text;
}

} // namespace troupe::compute::chat
