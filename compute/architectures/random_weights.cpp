#include "compute/architectures/random_weights.hpp"

#include "compute/weights/convert.hpp"
#include "compute/weights/digest.hpp"
#include "compute/weights/write_safetensors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <thread>

namespace troupe::compute {
namespace {

/// Elements drawn at once; a multiple of what one 64-bit number gives.
constexpr std::size_t piece_elements = std::size_t{1} << 20;

/// A number is drawn as an index of 12 bits into a table of quantiles; four of them come from one
/// random word of 64 bits.
constexpr std::size_t quantiles = 4096;
constexpr std::size_t draws_per_word = 4;

/// Steele et al. 2014, "Fast Splittable Pseudorandom Number Generators": the finaliser of
/// SplitMix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t stream_key(std::uint64_t seed, std::string_view name) {
  digest_stream digest;
  digest.add_number(seed);
  digest.add_text(name);
  std::uint64_t key = 0;
  const auto bytes = digest.digest();
  for (std::size_t i = 0; i < sizeof key; ++i)
    key |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return key;
}

/// The quantile of the normal distribution at probability p, by bisection of erfc: slow, exact
/// enough, and called for a table only. The result is rounded to 1/1024 so that no library's last
/// bit shows.
float normal_quantile(double p) {
  double low = -8;
  double high = 8;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
  }
  return static_cast<float>(std::round(low * 1024) / 1024);
}

const std::vector<float>& normal_table() {
  static const auto table = [] {
    std::vector<float> values;
    for (std::size_t i = 0; i < quantiles; ++i)
      values.push_back(normal_quantile((static_cast<double>(i) + 0.5) / quantiles));
    return values;
  }();
  return table;
}

/// What the numbers of a parameter look like.
struct distribution {
  float mean = 0;
  float deviation = 1;
};

distribution distribution_of(const parameter& which, float scale) {
  if (which.role.ends_with("bias"))
    return {0, 0.1f};
  if (which.shape.size() == 1)
    return {1, 0.1f};
  // A head on embeddings of deviation 1 would give logits as large as sqrt(hidden).
  if (which.role == "embedding")
    return {0, 1};
  return {0, scale / std::sqrt(static_cast<float>(which.columns()))};
}

/// One run of elements of one tensor of the file.
struct piece {
  std::size_t tensor = 0;
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Draws elements of one tensor in its stored type.
class tensor_source {
public:
  tensor_source(const random_model& wanted, const parameter& which)
    : element_(size_of(wanted.stored)), key_(stream_key(wanted.seed, which.name)) {
    const auto shape = distribution_of(which, wanted.scale);
    for (const auto quantile : normal_table()) {
      const auto bits = convert_from_f32(shape.mean + shape.deviation * quantile, wanted.stored);
      table_.push_back(bits);
    }
  }

  void draw(const piece& run, std::vector<std::byte>& out) const {
    out.resize((run.count + draws_per_word - 1) / draws_per_word * draws_per_word * element_);
    element_ == 4 ? draw_as<std::uint32_t>(run, out) : draw_as<std::uint16_t>(run, out);
    out.resize(run.count * element_);
  }

private:
  template <class Bits>
  void draw_as(const piece& run, std::vector<std::byte>& out) const {
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
    auto counter = key_ + golden * (run.first / draws_per_word);
    for (std::size_t i = 0; i < run.count; i += draws_per_word, counter += golden) {
      auto word = mix(counter);
      std::array<Bits, draws_per_word> drawn;
      for (auto& value : drawn) {
        value = static_cast<Bits>(table_[word % quantiles]);
        word >>= 16;
      }
      std::memcpy(out.data() + i * sizeof(Bits), drawn.data(), sizeof drawn);
    }
  }

  std::size_t element_;
  std::uint64_t key_;
  std::vector<std::uint32_t> table_;
};

} // namespace

random_weights::random_weights(const random_model& wanted,
                               const std::vector<parameter>& parameters,
                               std::size_t threads,
                               const write_progress& progress)
  : wanted_(wanted), threads_(std::clamp<std::size_t>(threads, 1, 64)), progress_(progress) {
  for (const auto& which : parameters)
    total_bytes_ += which.rows() * which.columns() * size_of(wanted_.stored);
}

void random_weights::add_progress(std::size_t bytes) {
  const std::scoped_lock lock(progress_mutex_);
  done_bytes_ += bytes;
  if (progress_)
    progress_(done_bytes_, total_bytes_);
}

result<void> random_weights::write(const std::filesystem::path& file,
                                   const std::vector<const parameter*>& which) {
  std::vector<tensor_to_write> tensors;
  std::vector<tensor_source> sources;
  std::vector<piece> pieces;
  for (const auto* one : which) {
    const auto elements = one->rows() * one->columns();
    for (std::size_t first = 0; first < elements; first += piece_elements)
      pieces.push_back({tensors.size(), first, std::min(piece_elements, elements - first)});
    tensors.push_back({one->name, wanted_.stored, one->shape});
    sources.emplace_back(wanted_, *one);
  }
  auto writer = safetensors_writer::create(file, tensors);
  if (!writer)
    return writer.error();
  std::atomic<std::size_t> next = 0;
  std::mutex failure_mutex;
  std::optional<error> failure;
  const auto work = [&] {
    std::vector<std::byte> bytes;
    for (auto i = next++; i < pieces.size(); i = next++) {
      sources[pieces[i].tensor].draw(pieces[i], bytes);
      const auto offset = pieces[i].first * size_of(wanted_.stored);
      if (auto done = writer->write(pieces[i].tensor, offset, bytes); !done) {
        const std::scoped_lock lock(failure_mutex);
        failure = done.error();
        next = pieces.size();
      }
      add_progress(bytes.size());
    }
  };
  std::vector<std::jthread> team;
  for (std::size_t i = 1; i < std::min(threads_, pieces.size()); ++i)
    team.emplace_back(work);
  work();
  team.clear(); // joins
  if (failure)
    return *failure;
  return writer->finish();
}

} // namespace troupe::compute
