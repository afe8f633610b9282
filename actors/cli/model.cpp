#include "actors/cli/model.hpp"

#include "actors/cli/command.hpp"
#include "actors/cli/progress.hpp"
#include "compute/batch.hpp"
#include "compute/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace troupe::cli {

namespace {

std::string join(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (const auto number : numbers)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  return text.empty() ? "none" : text;
}

compute::partition_record whole(const compute::model_shape& shape) {
  return {.units = {0, shape.layers}, .owns_input = true, .owns_output = true};
}

void print_model(const compute::model& model, const compute::shard_description& all) {
  const auto& shape = model.shape();
  fmt::print(
    "{}: {}, stored as {}\n", model.folder().string(), shape.family, to_string(shape.stored));
  fmt::print("layers {}, hidden {}, ffn {}, vocabulary {}, context {}\n",
             shape.layers,
             shape.hidden,
             shape.ffn,
             shape.vocabulary,
             shape.context);
  fmt::print("heads {} of {}, key/value heads {}, head tied to embedding: {}\n",
             shape.heads,
             shape.head_dim,
             shape.kv_heads,
             shape.tied_head ? "yes" : "no");
  fmt::print("end tokens: {}\n", join(model.end_tokens()));
  fmt::print("{}: {} on disk, {} held; state {} per {} positions\n",
             counted(all.tensors.size(), "tensor"),
             bytes_text(all.stored_bytes),
             bytes_text(all.held_bytes),
             bytes_text(all.kv_page_bytes),
             compute::kv_page_tokens);
  fmt::print("splits into at most {} pipeline stages of {} tensor ranks\n",
             shape.layers,
             model.max_tensor_size());
  fmt::print("description digest {}\n", compute::to_string(model.description_digest()));
}

} // namespace

result<dtype> parse_dtype(const std::string& name) {
  for (const auto type : {dtype::f32, dtype::f16, dtype::bf16}) {
    if (to_string(type) == name)
      return type;
  }
  return error{errc::invalid_argument,
               fmt::format("no element type {}; f32, f16 and bf16 would work", name)};
}

result<dtype> parse_held_dtype(const std::string& name) {
  for (const auto type : {dtype::int8, dtype::int4})
    if (to_string(type) == name)
      return type;
  if (auto plain = parse_dtype(name))
    return plain;
  return error{errc::invalid_argument,
               fmt::format("no type to hold weights in is called {}; f32, f16, bf16, int8 and int4 "
                           "would work",
                           name)};
}

result<void> apply_shape(const std::string& name, compute::random_model& wanted) {
  if (name == "custom")
    return {};
  if (!compute::apply_named_shape(name, wanted))
    return error{errc::invalid_argument,
                 fmt::format("no shape {}; 110M, 1.1B, 8B, 70B, 405B and custom would work", name)};
  return {};
}

int run_model_random_command(model_random_options options) {
  const auto stored = parse_dtype(options.stored);
  if (!stored)
    return fail(stored.error());
  options.wanted.stored = *stored;
  const auto threads = options.threads != 0 ? options.threads : std::thread::hardware_concurrency();
  progress_line progress(options.quiet);
  const auto written = compute::write_random_model(
    options.folder,
    options.wanted,
    std::max<std::size_t>(threads, 1),
    [&](std::size_t done, std::size_t total) {
      progress.show(fmt::format("writing: {} of {}", bytes_text(done), bytes_text(total)));
    });
  progress.clear();
  if (!written)
    return fail(written.error());
  return run_model_inspect_command(options.folder);
}

int run_model_inspect_command(const std::filesystem::path& folder) {
  const auto model = compute::model::open(folder);
  if (!model)
    return fail(model.error());
  const auto all = (*model)->describe(whole((*model)->shape()), (*model)->shape().stored);
  if (!all)
    return fail(all.error());
  print_model(**model, *all);
  return 0;
}

} // namespace troupe::cli
