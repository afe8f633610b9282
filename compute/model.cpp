#include "compute/model.hpp"

#include "compute/architectures/architecture.hpp"
#include "compute/architectures/decoder.hpp"
#include "compute/architectures/family.hpp"
#include "compute/end_tokens.hpp"
#include "compute/weights/json_object.hpp"
#include "compute/weights/mapped_file.hpp"
#include "compute/weights/tensor_index.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace troupe::compute {
namespace {

/// The type that most bytes of the parameters are stored in.
result<dtype> common_type(const architecture& design, const tensor_index& index) {
  std::map<dtype, std::size_t> bytes;
  for (const auto& which : design.parameters()) {
    const auto found = index.tensors().find(which.name);
    if (found == index.tensors().end())
      continue;
    const auto& stored = found->second.tensor;
    if (!stored.type)
      return error{errc::unsupported,
                   fmt::format("{}: tensor '{}' is stored as {}; F32, F16 and BF16 can be read",
                               found->second.file,
                               stored.name,
                               stored.type_name)};
    bytes[*stored.type] += stored.bytes;
  }
  const auto most = std::max_element(
    bytes.begin(), bytes.end(), [](const auto& l, const auto& r) { return l.second < r.second; });
  return most == bytes.end() ? dtype::f32 : most->first;
}

result<void> match_files(const architecture& design, const tensor_index& index) {
  std::vector<found_parameter> found;
  for (const auto& [name, tensor] : index.tensors())
    found.push_back({name, tensor.tensor.shape});
  return match_parameters(
    design.parameters(),
    found,
    [&](std::string_view name) { return design.is_known_extra(name); },
    [&](std::string_view name) { return index.may_be_absent(name); });
}

class folder_model final : public model {
public:
  folder_model(std::filesystem::path folder,
               std::unique_ptr<const architecture> design,
               tensor_index index,
               std::vector<token_id> ends,
               dtype stored)
    : folder_(std::move(folder)), design_(std::move(design)), index_(std::move(index)),
      ends_(std::move(ends)), shape_(design_->shape()) {
    shape_.stored = stored;
  }

  const std::filesystem::path& folder() const override { return folder_; }

  const model_shape& shape() const override { return shape_; }

  const boundary_schema& boundary() const override { return design_->boundary(); }

  const std::vector<token_id>& end_tokens() const override { return ends_; }

  std::size_t max_tensor_size() const override { return compute::max_tensor_size(shape_); }

  const architecture& design() const override { return *design_; }

  const tensor_index& index() const override { return index_; }

  model_costs costs(dtype hold) const override;

  result<shard_description> describe(const partition_record& record,
                                     held_types hold) const override {
    return describe(record, hold, absent_files::refuse);
  }

  result<shard_description> estimate(const partition_record& record,
                                     held_types hold) const override {
    return describe(record, hold, absent_files::assume);
  }

  digest128 description_digest() const override;
  result<std::vector<fingerprint>> fingerprints() const override;

private:
  /// What of a file that is not here: an error, or taken to hold what most others do.
  enum class absent_files : std::uint8_t { refuse, assume };

  result<shard_description>
  describe(const partition_record& record, held_types hold, absent_files absent) const;
  result<owned_tensor> describe_tensor(const parameter& which,
                                       const shard_ranges& ranges,
                                       const partition_record& record,
                                       dtype hold,
                                       absent_files absent) const;
  result<void> check_record(const partition_record& record) const;

  std::filesystem::path folder_;
  std::unique_ptr<const architecture> design_;
  tensor_index index_;
  std::vector<token_id> ends_;
  model_shape shape_;
};

model_costs folder_model::costs(dtype hold) const {
  model_costs costs;
  for (const auto& which : design_->parameters()) {
    const auto elements = static_cast<double>(which.rows() * which.columns());
    const bool matrix = which.shape.size() == 2;
    const auto bytes =
      static_cast<double>(held_bytes(matrix ? hold : dtype::f32, which.rows(), which.columns()));
    const double flops = elements * (matrix ? 2 : 4);
    const bool looked_up = which.role == embedding_role;
    if (which.place && which.place->unit == 0) {
      costs.unit_flops += flops;
      costs.unit_bytes += bytes;
    }
    if (looked_up) {
      costs.input_flops += static_cast<double>(which.columns());
      costs.input_bytes += static_cast<double>(which.columns() * size_of(shape_.stored));
    }
    if (!which.place && (!looked_up || shape_.tied_head)) {
      costs.output_flops += flops;
      costs.output_bytes += bytes;
    }
  }
  return costs;
}

result<void> folder_model::check_record(const partition_record& record) const {
  auto owned = check_ownership(design_->layout(), design_->owned_by(record));
  if (!owned)
    return owned.error();
  const bool first = record.units.begin == 0;
  const bool last = record.units.end == shape_.layers;
  if (record.owns_input != first || record.owns_output != last)
    return error{errc::contract_violation,
                 fmt::format("a partition of layers [{}, {}) of {} {} input and {} output; the "
                             "first stage owns the one, the last stage the other",
                             record.units.begin,
                             record.units.end,
                             shape_.layers,
                             record.owns_input ? "owns" : "does not own",
                             record.owns_output ? "owns" : "does not own")};
  return {};
}

result<owned_tensor> folder_model::describe_tensor(const parameter& which,
                                                   const shard_ranges& ranges,
                                                   const partition_record& record,
                                                   dtype hold,
                                                   absent_files absent) const {
  auto found = index_.find(which.name);
  if (!found && (absent == absent_files::refuse || !index_.may_be_absent(which.name)))
    return found.error();
  const auto part = cut_parameter(which, ranges);
  const auto elements = part.rows.size() * part.columns.size();
  owned_tensor owned{.name = which.name,
                     .file = found ? (*found)->file : "",
                     .rows = part.rows,
                     .columns = part.columns,
                     .stored = found ? *(*found)->tensor.type : shape_.stored};
  owned.stored_bytes = elements * size_of(owned.stored);
  switch (design_->held_as(which, record)) {
  case architecture::holding::packed:
    owned.held_bytes = held_bytes(hold, part.rows.size(), part.columns.size());
    break;
  case architecture::holding::table: owned.held_bytes = owned.stored_bytes; break;
  case architecture::holding::vector: owned.held_bytes = elements * sizeof(float); break;
  }
  return owned;
}

result<shard_description>
folder_model::describe(const partition_record& record, held_types hold, absent_files absent) const {
  if (auto valid = check_record(record); !valid)
    return valid.error();
  auto ranges = plan_shard(shape_, record.tensor_rank, record.tensor_size);
  if (!ranges)
    return ranges.error();
  shard_description shard{.heads = ranges->heads,
                          .kv_heads = ranges->kv_heads,
                          .ffn = ranges->ffn,
                          .vocabulary = ranges->vocabulary};
  for (const auto* which : local_parameters(design_->parameters(), design_->owned_by(record))) {
    auto owned = describe_tensor(*which, *ranges, record, hold.weights, absent);
    if (!owned)
      return owned.error();
    shard.stored_bytes += owned->stored_bytes;
    shard.held_bytes += owned->held_bytes;
    shard.tensors.push_back(*std::move(owned));
  }
  shard.kv_page_bytes = kv_cache::page_bytes({.layers = record.units.size(),
                                              .kv_heads = ranges->kv_heads.size(),
                                              .head_dim = shape_.head_dim,
                                              .pages = 1,
                                              .held = hold.state});
  return shard;
}

digest128 folder_model::description_digest() const {
  digest_stream digest;
  design_->describe_to(digest);
  for (const auto& which : design_->parameters()) {
    digest.add_text(which.name);
    for (const auto size : which.shape)
      digest.add_number(size);
  }
  for (const auto end : ends_)
    digest.add_number(end);
  return digest.digest();
}

/// Samples at the beginning, the middle and the end: enough to tell two trainings apart.
digest128 sample_tensor(const stored_tensor& tensor, std::span<const std::byte> file) {
  constexpr std::size_t sample = 1024;
  digest_stream digest;
  digest.add_text(tensor.name);
  digest.add_text(tensor.type_name);
  for (const auto size : tensor.shape)
    digest.add_number(size);
  const auto bytes = file.subspan(tensor.offset, tensor.bytes);
  const auto length = std::min(sample, bytes.size());
  const auto last = bytes.size() - length;
  for (const auto offset : {std::size_t{0}, last / 2, last})
    digest.add(bytes.subspan(offset, length));
  return digest.digest();
}

result<std::vector<model::fingerprint>> folder_model::fingerprints() const {
  std::map<std::string, std::shared_ptr<const mapped_file>> files;
  std::vector<fingerprint> prints;
  for (const auto& which : design_->parameters()) {
    const auto found = index_.tensors().find(which.name);
    if (found == index_.tensors().end())
      continue;
    const auto& [tensor, name] = found->second;
    auto& file = files[name];
    if (!file) {
      auto mapped = mapped_file::open(folder_ / name);
      if (!mapped)
        return mapped.error();
      file = *std::move(mapped);
    }
    if (file->bytes().size() < tensor.offset + tensor.bytes)
      return error{errc::io_error,
                   fmt::format("{}: was cut while it was in use; tensor '{}' lies beyond its end",
                               name,
                               tensor.name)};
    prints.push_back({which.name, sample_tensor(tensor, file->bytes())});
  }
  return prints;
}

} // namespace

result<std::shared_ptr<const model>> model::open(const std::filesystem::path& folder) {
  auto config = json_object::read(folder / "config.json");
  if (!config)
    return config.error();
  auto spec = read_decoder(*config);
  if (!spec)
    return spec.error();
  auto ends = read_end_tokens(folder, *config);
  if (!ends)
    return ends.error();
  auto design = make_decoder(*std::move(spec));
  if (!design)
    return design.error();
  auto index = tensor_index::open(folder);
  if (!index)
    return index.error();
  if (auto matched = match_files(**design, *index); !matched)
    return with_context(folder.string(), matched.error());
  auto stored = common_type(**design, *index);
  if (!stored)
    return with_context(folder.string(), stored.error());
  return std::shared_ptr<const model>(std::make_shared<folder_model>(
    folder, *std::move(design), *std::move(index), *std::move(ends), *stored));
}

result<std::shared_ptr<const model>>
model::sketch(std::string_view config, const std::string& name, dtype stored) {
  auto read = json_object::parse(config, name);
  if (!read)
    return read.error();
  auto spec = read_decoder(*read);
  if (!spec)
    return spec.error();
  auto design = make_decoder(*std::move(spec));
  if (!design)
    return design.error();
  return std::shared_ptr<const model>(std::make_shared<folder_model>(
    name, *std::move(design), tensor_index::all_absent(name), std::vector<token_id>{}, stored));
}

} // namespace troupe::compute
