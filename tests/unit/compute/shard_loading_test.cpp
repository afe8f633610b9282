// Which bytes a rank owns, that it reads no others, and the layers that are cut.

#include "compute/architectures/architecture.hpp"
#include "compute/architectures/parameters.hpp"
#include "compute/layers/attention.hpp"
#include "compute/layers/column_parallel.hpp"
#include "compute/layers/row_parallel.hpp"
#include "compute/weights/convert.hpp"
#include "compute/weights/shard_loader.hpp"
#include "tests/support/thread_group.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <map>
#include <thread>

using namespace troupe;
using namespace troupe::compute;
using namespace troupe::tests;

namespace {

partition_record whole_record(const model& source, std::size_t rank = 0, std::size_t size = 1) {
  return {.units = {0, source.shape().layers},
          .owns_input = true,
          .owns_output = true,
          .tensor_rank = rank,
          .tensor_size = size};
}

shard_description describe(const model& source, const partition_record& record) {
  auto shard = source.describe(record, dtype::bf16);
  BOOST_REQUIRE_MESSAGE(shard, (shard ? "" : shard.error().what));
  return *shard;
}

std::unique_ptr<device> make_cpu() {
  auto made = make_device("cpu", {});
  BOOST_REQUIRE(made);
  return *std::move(made);
}

bool says(const std::string& sentence, std::string_view part) {
  BOOST_TEST_MESSAGE(sentence);
  return sentence.find(part) != std::string::npos;
}

/// One rank's loader with everything that it needs.
struct rank_loader {
  rank_loader(const model& source, std::size_t rank, std::size_t size)
    : shard(describe(source, whole_record(source, rank, size))), where(make_cpu()),
      loader(source, shard, dtype::f32, *where, silent) {}

  shard_description shard;
  std::unique_ptr<device> where;
  load_progress silent;
  shard_loader loader;
};

} // namespace

BOOST_AUTO_TEST_CASE(rule_65_heads_columns_and_vocabulary_follow_one_split_rule) {
  const model_shape shape{
    .family = "llama", .heads = 13, .kv_heads = 13, .head_dim = 4, .ffn = 50, .vocabulary = 100};
  const std::vector<range> heads{{0, 5}, {5, 9}, {9, 13}};
  const std::vector<range> ffn{{0, 17}, {17, 34}, {34, 50}};
  const std::vector<range> vocabulary{{0, 34}, {34, 67}, {67, 100}};
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const auto ranges = plan_shard(shape, rank, 3);
    BOOST_REQUIRE(ranges);
    BOOST_TEST((ranges->heads == heads[rank]));
    BOOST_TEST((ranges->kv_heads == heads[rank]));
    BOOST_TEST((ranges->ffn == ffn[rank]));
    BOOST_TEST((ranges->vocabulary == vocabulary[rank]));
  }
}

BOOST_AUTO_TEST_CASE(A03_shared_kv_heads_are_replicated_and_mapped) {
  const model_shape shape{
    .family = "llama", .heads = 12, .kv_heads = 3, .head_dim = 4, .ffn = 50, .vocabulary = 100};
  // 12 heads on 5 ranks: 3, 3, 2, 2, 2; four heads share a key/value head.
  const std::vector<range> kv_heads{{0, 1}, {0, 2}, {1, 2}, {2, 3}, {2, 3}};
  const std::vector<std::vector<std::uint32_t>> maps{{0, 0, 0}, {0, 1, 1}, {0, 0}, {0, 0}, {0, 0}};
  for (std::size_t rank = 0; rank < 5; ++rank) {
    const auto ranges = plan_shard(shape, rank, 5);
    BOOST_REQUIRE(ranges);
    BOOST_TEST((ranges->kv_heads == kv_heads[rank]), "rank " << rank);
    BOOST_TEST((map_kv_heads(ranges->heads, ranges->kv_heads, 4) == maps[rank]), "rank " << rank);
  }
}

BOOST_AUTO_TEST_CASE(B19_vectors_are_cut_with_their_matrices_or_kept_whole) {
  const tiny_model files({.heads = 4, .kv_heads = 4, .ffn = 96, .biases = true});
  const auto source = files.open();
  const auto shard = describe(*source, whole_record(*source, 1, 2));
  std::map<std::string, range> columns;
  for (const auto& tensor : shard.tensors)
    columns[tensor.name] = tensor.columns;
  BOOST_TEST((columns["model.layers.0.self_attn.q_proj.bias"] == range{32, 64}));
  BOOST_TEST((columns["model.layers.0.mlp.up_proj.bias"] == range{48, 96}));
  BOOST_TEST((columns["model.layers.0.self_attn.o_proj.bias"] == range{0, 64}));
  BOOST_TEST((columns["model.layers.0.self_attn.o_proj.weight"] == range{32, 64}));
  BOOST_TEST((columns["model.layers.0.input_layernorm.weight"] == range{0, 64}));
}

BOOST_AUTO_TEST_CASE(parts_of_all_ranks_cover_every_tensor) {
  const tiny_model files({.layers = 3, .heads = 6, .kv_heads = 6, .head_dim = 10, .ffn = 101});
  const auto source = files.open();
  for (const std::size_t size : {1, 2, 4, 5, 6}) {
    std::map<std::string, std::size_t> elements;
    for (std::size_t rank = 0; rank < size; ++rank)
      for (const auto& tensor : describe(*source, whole_record(*source, rank, size)).tensors)
        if (tensor.rows.size() > 1)
          elements[tensor.name] += tensor.rows.size() * tensor.columns.size();
    for (const auto& which : source->design().parameters())
      if (which.shape.size() == 2)
        BOOST_TEST(elements[which.name] == which.rows() * which.columns(), which.name);
  }
}

BOOST_AUTO_TEST_CASE(a_rank_reads_the_bytes_that_it_owns_and_no_others) {
  const tiny_model files({.layers = 4, .stored = dtype::bf16, .files = 2});
  const auto source = files.open();
  std::size_t read = 0;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto record = whole_record(*source, rank, 2);
    const auto shard = describe(*source, record);
    const auto where = make_cpu();
    thread_group group(2);
    const auto member = group.member(rank);
    std::size_t last_done = 0;
    const auto loaded = partition::load(
      source, record, dtype::bf16, *where, *member, [&](std::size_t done, std::size_t total) {
        BOOST_TEST(done > last_done);
        BOOST_TEST(total == shard.stored_bytes);
        last_done = done;
      });
    BOOST_REQUIRE(loaded);
    BOOST_TEST((*loaded)->report().bytes_read == shard.stored_bytes);
    BOOST_TEST(last_done == shard.stored_bytes);
    read += shard.stored_bytes;
  }
  const auto everything = describe(*source, whole_record(*source)).stored_bytes;
  BOOST_TEST(read > everything); // norms are whole on both
  BOOST_TEST(read < everything * 102 / 100);
}

BOOST_AUTO_TEST_CASE(a_rank_with_other_layers_reads_only_those_that_it_did_not_hold) {
  const tiny_model files({.layers = 4, .stored = dtype::bf16});
  const auto source = files.open();
  const auto where = make_cpu();
  solo_collective solo;
  const auto stage = [&](range units) {
    return partition_record{
      .units = units, .owns_input = units.begin == 0, .owns_output = units.end == 4};
  };
  const auto load = [&](const partition_record& record, held_weights held = {}) {
    auto loaded = partition::load(source, record, dtype::f32, *where, solo, {}, std::move(held));
    BOOST_REQUIRE(loaded);
    return *std::move(loaded);
  };
  const auto stored = [&](range units) { return describe(*source, stage(units)).stored_bytes; };
  auto part = load(stage({0, 4}));
  for (const auto& [units, not_held] :
       std::vector<std::pair<range, std::size_t>>{{{0, 2}, 0},
                                                  {{1, 3}, stored({1, 3}) / 2},
                                                  {{0, 3}, stored({0, 3}) - stored({1, 3})},
                                                  {{0, 3}, 0},
                                                  {{3, 4}, stored({3, 4})}}) {
    auto held = part->weights();
    part.reset();
    part = load(stage(units), std::move(held));
    const auto afresh = load(stage(units));
    BOOST_TEST(part->report().bytes_read == not_held, units.begin << "-" << units.end);
    BOOST_TEST(part->report().bytes_held == afresh->report().bytes_held);
    BOOST_TEST(part->report().digests.size() == afresh->report().digests.size());
    for (std::size_t i = 0; i < afresh->report().digests.size(); ++i) {
      BOOST_TEST(part->report().digests[i].tensor == afresh->report().digests[i].tensor);
      BOOST_TEST((part->report().digests[i].digest == afresh->report().digests[i].digest));
    }
  }
}

BOOST_AUTO_TEST_CASE(digests_of_the_same_part_are_equal_and_of_other_weights_differ) {
  const tiny_model one({.layers = 2, .heads = 4, .kv_heads = 1, .seed = 1});
  const tiny_model other({.layers = 2, .heads = 4, .kv_heads = 1, .seed = 2});
  const auto load = [](const tiny_model& files, std::size_t rank) {
    const auto source = files.open();
    const auto where = make_cpu();
    thread_group group(2);
    const auto member = group.member(rank);
    auto loaded =
      partition::load(source, whole_record(*source, rank, 2), dtype::f32, *where, *member, {});
    BOOST_REQUIRE(loaded);
    std::map<std::string, loaded_digest> digests;
    for (const auto& digest : (*loaded)->report().digests)
      digests[digest.tensor] = digest;
    return digests;
  };
  auto first = load(one, 0);
  auto second = load(one, 1);
  auto foreign = load(other, 0);
  // The one key/value head is on both ranks; query heads are not shared.
  const std::string key = "model.layers.1.self_attn.k_proj.weight";
  const std::string query = "model.layers.1.self_attn.q_proj.weight";
  BOOST_TEST((first[key].digest == second[key].digest));
  BOOST_TEST((first[query].digest != second[query].digest));
  for (const auto& [name, digest] : first)
    BOOST_TEST((digest.digest != foreign[name].digest), name);
}

BOOST_AUTO_TEST_CASE(a_digest_is_that_of_the_bytes_of_a_part_row_by_row) {
  // Wide enough for slices, on a team that shares them out.
  const tiny_model files(
    {.layers = 1, .hidden = 256, .ffn = 3000, .vocabulary = 3000, .stored = dtype::bf16});
  const auto source = files.open();
  const auto text = read_text(files.folder() / "model.safetensors");
  for (const std::size_t threads : {1, 3})
    for (const std::size_t size : {1, 2}) {
      auto where = make_device("cpu", {.threads = threads, .cores = {}});
      BOOST_REQUIRE(where);
      thread_group group(size);
      const auto member = group.member(0);
      const auto loaded =
        partition::load(source, whole_record(*source, 0, size), dtype::int4, **where, *member, {});
      BOOST_REQUIRE(loaded);
      for (const auto& part : (*loaded)->report().digests) {
        const auto& tensor = (*source->index().find(part.tensor))->tensor;
        digest_stream expected;
        for (auto row = part.rows.begin; row < part.rows.end; ++row)
          expected.add(
            std::as_bytes(std::span(text))
              .subspan(tensor.offset + (row * tensor.shape.back() + part.columns.begin) * 2,
                       part.columns.size() * 2));
        BOOST_TEST((part.digest == expected.digest()), part.tensor);
      }
    }
}

BOOST_AUTO_TEST_CASE(rule_63_a_column_parallel_layer_checks_its_width) {
  const tiny_model files({.heads = 4, .ffn = 96});
  const auto source = files.open();
  rank_loader rank(*source, 1, 2);
  const auto path = "model.layers.0.mlp.gate_proj";
  const auto wrong = column_parallel::load(rank.loader, *rank.where, {{path, 96}}, false);
  BOOST_REQUIRE(!wrong);
  BOOST_TEST((wrong.error().code == errc::contract_violation));
  BOOST_TEST(says(wrong.error().what, "the shard holds 48 output features, the rank owns 96"));
  const auto right = column_parallel::load(rank.loader, *rank.where, {{path, 48}}, false);
  BOOST_REQUIRE(right);
  BOOST_TEST(right->width() == 48u);
}

BOOST_AUTO_TEST_CASE(rule_64_a_row_parallel_layer_checks_its_slice_and_counts_its_bias_once) {
  const tiny_model files({.heads = 4, .ffn = 96, .biases = true});
  const auto source = files.open();
  const auto path = "model.layers.1.mlp.down_proj";
  constexpr std::size_t rows = 3;
  constexpr std::size_t hidden = 64;
  std::vector<float> input(rows * 96);
  for (std::size_t i = 0; i < input.size(); ++i)
    input[i] = std::cos(static_cast<float>(i));
  const auto run = [&](std::size_t size) {
    thread_group group(size);
    std::vector<std::vector<float>> outputs(size, std::vector<float>(rows * hidden));
    std::vector<std::jthread> team;
    std::vector<std::unique_ptr<rank_loader>> ranks;
    std::vector<row_parallel> layers;
    for (std::size_t rank = 0; rank < size; ++rank) {
      ranks.push_back(std::make_unique<rank_loader>(*source, rank, size));
      auto layer =
        row_parallel::load(ranks[rank]->loader, *ranks[rank]->where, path, 96 / size, true);
      BOOST_REQUIRE(layer);
      layers.push_back(*std::move(layer));
    }
    std::vector<float> residual(rows * hidden, 0.5f);
    for (std::size_t rank = 0; rank < size; ++rank)
      team.emplace_back([&, rank] {
        const auto width = 96 / size;
        const auto member = group.member(rank);
        const auto x = tensor(input.data(), rows, 96).slice(rank * width, width);
        const tensor out(outputs[rank].data(), rows, hidden);
        check(
          layers[rank].forward(x, tensor(residual.data(), rows, hidden), out, *member).has_value(),
          "the group meets");
      });
    team.clear();
    for (const auto& output : outputs)
      BOOST_TEST((output == outputs.front()));
    return outputs.front();
  };
  const auto one = run(1);
  for (const std::size_t size : {2, 3}) {
    const auto many = run(size);
    for (std::size_t i = 0; i < one.size(); ++i)
      BOOST_REQUIRE(std::fabs(many[i] - one[i]) <= 1e-5f);
  }
  rank_loader rank(*source, 0, 2);
  const auto wrong = row_parallel::load(rank.loader, *rank.where, path, 96, true);
  BOOST_REQUIRE(!wrong);
  BOOST_TEST(says(wrong.error().what, "takes 48 input features, the rank's slice has 96"));
}

BOOST_AUTO_TEST_CASE(costs_count_layers_head_and_lookup) {
  const tiny_model untied({.layers = 3, .hidden = 64, .heads = 4, .kv_heads = 2, .ffn = 128});
  const auto source = untied.open();
  const auto costs = source->costs(dtype::bf16);
  const double matrices = 64 * 64 + 2 * 32 * 64 + 64 * 64 + 3 * 128 * 64;
  BOOST_TEST(costs.unit_bytes == matrices * 2 + 2 * 64 * 4);
  BOOST_TEST(costs.unit_flops == matrices * 2 + 2 * 64 * 4);
  BOOST_TEST(costs.output_bytes == 256 * 64 * 2 + 64 * 4);
  BOOST_TEST(costs.input_bytes == 64 * 4);
  const tiny_model tied({.layers = 3, .tied_head = true});
  BOOST_TEST(tied.open()->costs(dtype::bf16).output_bytes == 256 * 64 * 2 + 64 * 4);
}

BOOST_AUTO_TEST_CASE(sixteen_bit_floats_convert_exactly_and_round_to_even) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (!std::isnan(f16_to_f32(half)))
      BOOST_REQUIRE(f32_to_f16(f16_to_f32(half)) == half);
    if (!std::isnan(bf16_to_f32(half)))
      BOOST_REQUIRE(f32_to_bf16(bf16_to_f32(half)) == half);
  }
  BOOST_TEST(f16_to_f32(0x3555) == 0x1.554p-2f);
  BOOST_TEST(f32_to_f16(65519.0f) == 0x7bff);
  BOOST_TEST(f32_to_f16(65520.0f) == 0x7c00);
  BOOST_TEST(f32_to_f16(1.0f + 0x1p-11f) == 0x3c00); // a tie, to even
  BOOST_TEST(f32_to_f16(1.0f + 3 * 0x1p-11f) == 0x3c02);
  BOOST_TEST(f32_to_f16(0x1p-25f) == 0x0000);
  BOOST_TEST(f32_to_f16(0x1.8p-24f) == 0x0002);
  BOOST_TEST(f32_to_f16(0x1.fffp-15f) == 0x0400);
  BOOST_TEST(f32_to_bf16(1.0f + 0x1p-8f) == 0x3f80);
  BOOST_TEST(std::isnan(f16_to_f32(f32_to_f16(std::nanf("")))));
  BOOST_TEST(std::isnan(bf16_to_f32(f32_to_bf16(std::nanf("")))));
}
