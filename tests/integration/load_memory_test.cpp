// What a process takes while it loads a model: its peak as the kernel keeps it (VmHWM), which no
// sampling can miss. Pages of the mapped model file count while they are resident: a process that
// kept them would take the room of the weights twice.

#include "compute/architectures/random_model.hpp"
#include "tests/support/cluster_commands.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <fmt/format.h>

#include <fstream>
#include <string>

using namespace troupe;
using namespace troupe::tests;
namespace data = boost::unit_test::data;

namespace {

/// Of /proc/<process>/status, in bytes.
struct memory_status {
  std::size_t peak = 0;      ///< VmHWM
  std::size_t anonymous = 0; ///< RssAnon
  std::size_t file = 0;      ///< RssFile

  explicit memory_status(pid_t process) {
    std::ifstream in{fmt::format("/proc/{}/status", process)};
    for (std::string line; std::getline(in, line);)
      for (const auto& [name, value] :
           {std::pair{"VmHWM:", &peak}, {"RssAnon:", &anonymous}, {"RssFile:", &file}})
        if (line.starts_with(name))
          *value = std::stoull(line.substr(line.find(':') + 1)) * 1024;
    BOOST_REQUIRE(peak > 0);
  }
};

/// Four layers of hidden 768 and 32768 rows of embedding: the largest weight has a third of them
/// all, or, where it is the head as well, half.
const served_model& heavy_model(bool tied_head) {
  const auto write = [](bool tied) {
    compute::random_model wanted{.layers = 4,
                                 .hidden = 768,
                                 .heads = 12,
                                 .kv_heads = 4,
                                 .ffn = 2048,
                                 .context = 256,
                                 .tied_head = tied,
                                 .stored = dtype::bf16};
    return served_model{wanted, 32768};
  };
  static const served_model tied{write(true)}, untied{write(false)};
  return tied_head ? tied : untied;
}

/// A process of one rank that serves and was asked nothing yet.
struct serving_process {
  std::size_t held = 0; ///< Bytes of weights, as the status tells.
  memory_status memory;
};

serving_process serve(const served_model& model, const std::string& held) {
  const cluster one(in_one_process(model.folder(), 1));
  const serving_cluster served(
    one, set({"model.dtype=" + held, "model.allow_vocabulary_padding=true", "node.n0.threads=2"}));
  const auto bytes = served.gauges().at(0).at("weight_bytes");
  return {bytes, memory_status(process_of(one, "n0"))};
}

} // namespace

BOOST_DATA_TEST_CASE(the_peak_at_load_is_below_a_tenth_more_than_what_is_held,
                     data::make({"f16", "bf16", "int8", "int4"}) * data::make({false, true}),
                     held,
                     tied) {
  // What the program takes without weights to speak of.
  static const auto bare = serve(short_model(), "bf16").memory;
  // A slice of each thread's and of its neighbour's pages; the last large page of two regions.
  constexpr std::size_t around = std::size_t{8} << 20;
  const auto found = serve(heavy_model(tied), held);
  const auto peak = found.memory.peak - bare.peak;
  BOOST_TEST_MESSAGE(held << (tied ? ", tied" : "") << ": holds " << found.held << ", peak " << peak
                          << " above " << bare.peak << "; now anonymous "
                          << found.memory.anonymous - bare.anonymous << ", of files "
                          << found.memory.file << " (bare " << bare.file << ")");
  BOOST_TEST(found.held > std::size_t{25} << 20);
  BOOST_TEST(peak > found.held / 2); // Otherwise another process was looked at.
  BOOST_TEST(peak < found.held / 10 * 11 + around);
}
