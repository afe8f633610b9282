#include "compute/faults/faulty_device.hpp"

#include <fmt/core.h>

#include <limits>

namespace troupe::compute {

namespace {

error refusal(std::string_view what) {
  return {errc::out_of_memory, fmt::format("{} was refused on purpose (refuse_allocation)", what)};
}

class faulty_device final : public device {
public:
  faulty_device(std::unique_ptr<device> inner, fault_injector& faults)
    : inner_(std::move(inner)), faults_(faults) {}

  std::string describe() const override { return inner_->describe() + "; faults on purpose"; }

  result<buffer> allocate(std::size_t bytes) override {
    if (faults_.refuses_allocation())
      return refusal(fmt::format("a buffer of {} bytes", bytes));
    return inner_->allocate(bytes);
  }

  result<std::unique_ptr<matrix>> pack(std::span<const weight_source> sources,
                                       dtype hold) override {
    if (faults_.refuses_allocation())
      return refusal(
        fmt::format("a weight of {} x {}", sources.front().rows, sources.front().columns));
    return inner_->pack(sources, hold);
  }

  result<std::unique_ptr<matrix>> table(const weight_source& source) override {
    if (faults_.refuses_allocation())
      return refusal(fmt::format("a table of {} x {}", source.rows, source.columns));
    return inner_->table(source);
  }

  result<std::unique_ptr<kv_cache>> make_kv_cache(const kv_shape& shape) override {
    if (faults_.refuses_allocation())
      return refusal(fmt::format("attention memory of {} pages", shape.pages));
    return inner_->make_kv_cache(shape);
  }

  void
  embed(const matrix& weights, std::span<const token_id> ids, token_id first, tensor out) override {
    inner_->embed(weights, ids, first, out);
  }

  void matmul(const matrix& weights,
              tensor x,
              std::span<const float> bias,
              tensor out,
              tensor added) override {
    inner_->matmul(weights, x, bias, out, added);
    // A product's output is an activation whatever the family: each layer has several.
    if (const auto seed = faults_.spoils_activation(); seed && out.rows > 0 && out.columns > 0)
      out.row(*seed % out.rows)[*seed / out.rows % out.columns] =
        std::numeric_limits<float>::quiet_NaN();
  }

  void rms_norm(tensor x, std::span<const float> weight, float eps, tensor out) override {
    inner_->rms_norm(x, weight, eps, out);
  }

  void
  head_norm(tensor x, std::size_t head_dim, std::span<const float> weight, float eps) override {
    inner_->head_norm(x, head_dim, weight, eps);
  }

  void rope(tensor x, std::size_t head_dim, const rope_table& table, const batch& rows) override {
    inner_->rope(x, head_dim, table, rows);
  }

  void store_kv(
    kv_cache& cache, std::size_t layer, const batch& rows, tensor keys, tensor values) override {
    inner_->store_kv(cache, layer, rows, keys, values);
  }

  void attention(const kv_cache& cache,
                 const attention_call& call,
                 const batch& rows,
                 tensor queries,
                 tensor out) override {
    inner_->attention(cache, call, rows, queries, out);
  }

  void silu_mul(tensor gate, tensor up, tensor out) override { inner_->silu_mul(gate, up, out); }

  void add(tensor x, tensor out) override { inner_->add(x, out); }

  void find_finite(tensor x, std::span<bool> finite) override { inner_->find_finite(x, finite); }

  void synchronise() override { inner_->synchronise(); }

private:
  std::unique_ptr<device> inner_;
  fault_injector& faults_;
};

} // namespace

std::unique_ptr<device> make_faulty_device(std::unique_ptr<device> inner, fault_injector& faults) {
  return std::make_unique<faulty_device>(std::move(inner), faults);
}

} // namespace troupe::compute
