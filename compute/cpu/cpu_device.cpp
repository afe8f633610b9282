#include "compute/cpu/cpu_device.hpp"

#include "compute/cpu/instruction_sets.hpp"
#include "compute/cpu/operations.hpp"

#include <fmt/core.h>

namespace troupe::compute::cpu {

namespace {

template <class Mine, class Base>
Mine& of_this_device(Base& object) {
  auto* mine = dynamic_cast<Mine*>(&object);
  check(mine != nullptr, "what an operation works on was made by this device, for this use");
  return *mine;
}

class cpu_device final : public device {
public:
  cpu_device(std::unique_ptr<thread_team> team, std::atomic<std::uint64_t>* pulse)
    : on_(std::move(team), pulse) {}

  std::string describe() const override {
    const auto threads = on_.team->size();
    return fmt::format("cpu {}, {} thread{}; weights of 16 bits are computed in f32, of 8 "
                       "and 4 in whole numbers",
                       instruction_set(),
                       threads,
                       threads == 1 ? "" : "s");
  }

  result<buffer> allocate(std::size_t bytes) override {
    // What is that large is kept from pass to pass. Logits and boundaries come and go: the C
    // library hands out the same memory again, where a mapping would have to be cleared each time.
    constexpr std::size_t kept = std::size_t{8} << 20;
    return bytes < kept ? buffer::allocate(bytes) : map_memory(bytes, "working memory");
  }

  result<std::unique_ptr<matrix>> pack(std::span<const weight_source> sources,
                                       dtype hold) override {
    auto made = pack_panels(on_, sources, hold);
    if (!made)
      return made.error();
    return std::unique_ptr<matrix>(std::move(*made));
  }

  result<std::unique_ptr<matrix>> table(const weight_source& source) override {
    return std::unique_ptr<matrix>(std::make_unique<row_table>(source));
  }

  result<std::unique_ptr<kv_cache>> make_kv_cache(const kv_shape& shape) override {
    auto made = make_kv_pages(shape);
    if (!made)
      return made.error();
    return std::unique_ptr<kv_cache>(std::move(*made));
  }

  void
  embed(const matrix& weights, std::span<const token_id> ids, token_id first, tensor out) override {
    cpu::embed(on_, weights, ids, first, out);
  }

  void matmul(const matrix& weights,
              tensor x,
              std::span<const float> bias,
              tensor out,
              tensor added) override {
    cpu::matmul(on_, of_this_device<const panel_matrix>(weights), x, bias, out, added);
  }

  void rms_norm(tensor x, std::span<const float> weight, float eps, tensor out) override {
    cpu::rms_norm(on_, x, x.columns, weight, eps, out);
  }

  void
  head_norm(tensor x, std::size_t head_dim, std::span<const float> weight, float eps) override {
    cpu::rms_norm(on_, x, head_dim, weight, eps, x);
  }

  void rope(tensor x, std::size_t head_dim, const rope_table& table, const batch& rows) override {
    rotate(on_, x, head_dim, angles_.find(table, rows));
  }

  void store_kv(
    kv_cache& cache, std::size_t layer, const batch& rows, tensor keys, tensor values) override {
    cpu::store_kv(on_, of_this_device<kv_pages>(cache), layer, rows, keys, values);
  }

  void attention(const kv_cache& cache,
                 const attention_call& call,
                 const batch& rows,
                 tensor queries,
                 tensor out) override {
    cpu::attention(on_, of_this_device<const kv_pages>(cache), call, rows, queries, out);
  }

  void silu_mul(tensor gate, tensor up, tensor out) override { cpu::silu_mul(on_, gate, up, out); }

  void add(tensor x, tensor out) override { cpu::add(on_, x, out); }

  void find_finite(tensor x, std::span<bool> finite) override { cpu::find_finite(on_, x, finite); }

  void synchronise() override {} // Every operation has returned its result.

private:
  execution on_;
  rope_memo angles_;
};

} // namespace

result<std::unique_ptr<device>> make_cpu_device(const device_options& options) {
  auto team = thread_team::start(options);
  if (!team)
    return with_context("starting the threads of the cpu device", team.error());
  return std::unique_ptr<device>(std::make_unique<cpu_device>(std::move(*team), options.pulse));
}

} // namespace troupe::compute::cpu
