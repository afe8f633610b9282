// A chat template, from a stranger's model folder: it is parsed, and rendered for a conversation.

#include "compute/chat/chat_template.hpp"

#include <cstdlib>
#include <string_view>

using namespace troupe::compute::chat;

namespace {

value conversation() {
  dictionary call = {{"name", "f"}, {"arguments", value(dictionary{{"x", 1}, {"y", "\u00e9"}})}};
  return value::items{
    value(dictionary{{"role", "system"}, {"content", " Be brief.\n"}}),
    value(dictionary{{"role", "user"}, {"content", "Hi <b>\"there\"</b>"}}),
    value(dictionary{{"role", "assistant"},
                     {"content", ""},
                     {"tool_calls", value::items{value(dictionary{{"function", call}})}}}),
    value(dictionary{{"role", "tool"}, {"content", value::items{value(1.5), value::none()}}})};
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto parsed = chat_template::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!parsed)
    return 0;
  static const value messages = conversation();
  render_options options;
  options.now = std::chrono::system_clock::time_point{};
  options.limits.work = std::size_t{1} << 20; // many inputs a second
  auto made = (*parsed)->render(messages, options, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  if (!made && made.error().what.empty())
    std::abort();
  return 0;
}
