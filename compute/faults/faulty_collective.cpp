#include "compute/faults/faulty_collective.hpp"

#include <algorithm>
#include <vector>

namespace troupe::compute {

namespace {

class faulty_collective final : public collective {
public:
  faulty_collective(collective& inner, fault_injector& faults) : inner_(inner), faults_(faults) {}

  std::size_t rank() const noexcept override { return inner_.rank(); }

  std::size_t size() const noexcept override { return inner_.size(); }

  result<void> all_reduce_sum(std::span<float> values) override {
    const auto met = faults_.meet_collective();
    if (!met)
      return inner_.all_reduce_sum(values);
    if (met->what == fault_action::wrong_operation)
      return inner_.barrier();
    if (met->what == fault_action::fail_collective)
      return failure();
    std::vector<float> other(length_of(met->length, values.size()).value_or(0));
    std::copy_n(values.begin(), std::min(values.size(), other.size()), other.begin());
    return inner_.all_reduce_sum(other);
  }

  result<void> all_gather(std::span<const float> mine,
                          std::span<const std::size_t> counts,
                          std::span<float> all) override {
    const auto met = faults_.meet_collective();
    if (!met)
      return inner_.all_gather(mine, counts, all);
    if (met->what == fault_action::wrong_operation)
      return inner_.barrier();
    if (met->what == fault_action::fail_collective)
      return failure();
    std::vector<std::size_t> told(counts.begin(), counts.end());
    auto& own = told.at(rank());
    own = length_of(met->length, own).value_or(0);
    const std::vector<float> brought(own, 0.0f);
    std::size_t sum = 0;
    for (const auto count : told)
      sum += count;
    std::vector<float> room(sum);
    return inner_.all_gather(brought, told, room);
  }

  result<void> barrier() override {
    const auto met = faults_.meet_collective();
    if (!met)
      return inner_.barrier();
    if (met->what == fault_action::fail_collective)
      return failure();
    float other = 0; // A barrier has no length: it is another operation.
    return inner_.all_reduce_sum({&other, 1});
  }

private:
  static error failure() {
    return {errc::compute_error, "a collective failed on purpose (fail_collective)"};
  }

  collective& inner_;
  fault_injector& faults_;
};

} // namespace

std::unique_ptr<collective> make_faulty_collective(collective& inner, fault_injector& faults) {
  return std::make_unique<faulty_collective>(inner, faults);
}

} // namespace troupe::compute
