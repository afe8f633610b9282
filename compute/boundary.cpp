#include "compute/boundary.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <set>

namespace troupe::compute {
namespace {

error broken(std::string sentence) {
  return {errc::contract_violation, std::move(sentence)};
}

result<void> check_tensor(const boundary_tensor& tensor) {
  if (tensor.role.empty())
    return broken("a boundary tensor has an empty role");
  if (tensor.shape.empty())
    return broken(fmt::format("boundary tensor '{}' has no dimension", tensor.role));
  for (const auto& size : tensor.shape)
    if (size.is == dimension::kind::fixed && size.size == 0)
      return broken(
        fmt::format("boundary tensor '{}' has a fixed dimension of size 0", tensor.role));
  return {};
}

std::vector<std::size_t> resolve(const boundary_tensor& tensor, std::size_t rows) {
  std::vector<std::size_t> sizes;
  for (const auto& size : tensor.shape)
    sizes.push_back(size.is == dimension::kind::fixed ? size.size : rows);
  return sizes;
}

result<void>
admit_tensor(const boundary_tensor& wanted, const offered_tensor& offered, std::size_t rows) {
  if (offered.role != wanted.role)
    return broken(fmt::format(
      "a boundary tensor has the role '{}'; '{}' is expected here", offered.role, wanted.role));
  const auto shape = resolve(wanted, rows);
  if (offered.shape != shape)
    return broken(fmt::format("boundary tensor '{}' has the shape [{}]; [{}] is expected",
                              wanted.role,
                              fmt::join(offered.shape, ", "),
                              fmt::join(shape, ", ")));
  if (offered.type != wanted.type)
    return broken(fmt::format("boundary tensor '{}' is of type {}; {} is expected",
                              wanted.role,
                              to_string(offered.type),
                              to_string(wanted.type)));
  return {};
}

} // namespace

result<void> boundary_schema::validate() const {
  if (identity.empty())
    return broken("a boundary schema has an empty identity");
  if (primary.type != dtype::f32)
    return broken(fmt::format("the primary boundary tensor '{}' is of type {}; activations are {}",
                              primary.role,
                              to_string(primary.type),
                              to_string(dtype::f32)));
  std::set<std::string_view> roles;
  const auto check_one = [&](const boundary_tensor& tensor) -> result<void> {
    if (auto sound = check_tensor(tensor); !sound)
      return sound;
    if (!roles.insert(tensor.role).second)
      return broken(fmt::format("two boundary tensors have the role '{}'", tensor.role));
    return {};
  };
  if (auto sound = check_one(primary); !sound)
    return sound;
  for (const auto& tensor : auxiliaries)
    if (auto sound = check_one(tensor); !sound)
      return sound;
  return {};
}

std::size_t boundary_schema::bytes(std::size_t rows) const {
  const auto of = [&](const boundary_tensor& tensor) {
    std::size_t size = size_of(tensor.type);
    for (const auto factor : resolve(tensor, rows))
      size *= factor;
    return size;
  };
  auto total = of(primary);
  for (const auto& tensor : auxiliaries)
    total += of(tensor);
  return total;
}

result<void> admit_boundary(const boundary_schema& schema,
                            std::string_view offered_identity,
                            std::span<const offered_tensor> offered,
                            std::size_t rows,
                            std::size_t max_rows) {
  const auto expected = 1 + schema.auxiliaries.size();
  if (offered.size() != expected)
    return broken(
      fmt::format("a boundary has {} tensors; {} are expected", offered.size(), expected));
  for (std::size_t i = 0; i < expected; ++i) {
    const auto& wanted = i == 0 ? schema.primary : schema.auxiliaries[i - 1];
    if (auto admitted = admit_tensor(wanted, offered[i], rows); !admitted)
      return admitted;
  }
  if (offered_identity != schema.identity)
    return broken(fmt::format("a boundary comes from schema '{}'; this stage takes '{}'",
                              offered_identity,
                              schema.identity));
  if (rows == 0)
    return broken("a boundary has 0 rows; at least 1 is needed");
  if (rows > max_rows)
    return broken(fmt::format("a boundary has {} rows; at most {} are admitted", rows, max_rows));
  return {};
}

} // namespace troupe::compute
