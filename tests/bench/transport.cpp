// bench_transport: one JSON line a measure. Latency and bandwidth of the transport and of raw
// active messages of UCX between two processes, over shared memory and TCP; all-reduce of 2 and 4
// processes through shared memory and over frames.

#include "tests/bench/channel.hpp"
#include "transport/collectives/endpoint_collective.hpp"
#include "transport/collectives/shared_memory_collective.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <fmt/format.h>

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>

namespace {

using namespace troupe;
using namespace troupe::bench;
namespace wire = troupe::transport;
using clock_type = std::chrono::steady_clock;

constexpr const char* over_memory = "posix,sysv,cma,self";
constexpr const char* over_tcp = "tcp";
constexpr std::size_t most_processes = 4;

/// What the processes of one measure share: addresses, a barrier, a result.
struct table {
  std::atomic<unsigned> arrived;
  std::size_t address_bytes[most_processes];
  std::byte address[most_processes][1024];
  double result;

  void meet(unsigned processes) {
    const unsigned round = arrived.fetch_add(1) / processes;
    while (arrived.load() < (round + 1) * processes)
      sched_yield();
  }
};

/// Runs body(rank, table) in `processes` processes at once, each on a core of its own where there
/// are enough; the result that rank 0 left in the table.
template <class Body>
double run_processes(unsigned processes, Body body) {
  void* memory =
    ::mmap(nullptr, sizeof(table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED, "a benchmark has memory");
  auto& shared = *new (memory) table{};
  std::vector<pid_t> children;
  for (unsigned rank = 0; rank < processes; ++rank) {
    const pid_t child = ::fork();
    check(child >= 0, "a benchmark starts processes");
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::alarm(120); // A hang ends the measure.
      cpu_set_t core;
      CPU_ZERO(&core);
      CPU_SET(rank % std::thread::hardware_concurrency(), &core);
      ::sched_setaffinity(0, sizeof core, &core);
      body(rank, shared);
      ::_exit(0);
    }
    children.push_back(child);
  }
  bool failed = false;
  for (const auto child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    failed = failed || status != 0;
  }
  const double found = failed ? -1.0 : shared.result;
  ::munmap(memory, sizeof(table));
  return found;
}

double median(std::vector<double> values) {
  std::nth_element(
    values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double microseconds_since(clock_type::time_point start) {
  return std::chrono::duration<double, std::micro>(clock_type::now() - start).count();
}

compute::buffer filled(std::size_t bytes) {
  auto made = compute::buffer::allocate(bytes);
  check(made.has_value(), "a benchmark has memory");
  std::memset(made->data(), 1, bytes);
  return *made;
}

std::unique_ptr<channel>
open_channel(bool raw, const std::string& transports, unsigned rank, table& shared) {
  auto made = raw ? make_raw_channel(transports) : make_transport_channel(transports, rank);
  const auto mine = made->address();
  shared.address_bytes[rank] = mine.size();
  std::memcpy(shared.address[rank], mine.data(), mine.size());
  shared.meet(2);
  made->connect({shared.address[1 - rank], shared.address_bytes[1 - rank]});
  return made;
}

/// Progress until all has left, and then as long as the other end needs.
void leave(channel& wires, table& shared) {
  while (!wires.idle())
    wires.receive();
  shared.arrived.fetch_add(1);
  while (shared.arrived.load() % 2 != 0)
    wires.receive();
}

double one_way(bool raw, const std::string& transports, std::size_t bytes, std::size_t rounds) {
  return run_processes(2, [&](unsigned rank, table& shared) {
    auto wires = open_channel(raw, transports, rank, shared);
    const auto payload = filled(bytes);
    std::vector<double> times;
    for (std::size_t i = 0; i < rounds + rounds / 10; ++i) {
      const auto start = clock_type::now();
      if (rank == 0)
        wires->post(payload);
      while (wires->receive() == 0) {
      }
      if (rank == 1)
        wires->post(payload);
      else if (i >= rounds / 10)
        times.push_back(microseconds_since(start) / 2);
    }
    if (rank == 0)
      shared.result = median(times);
    leave(*wires, shared);
  });
}

/// Gigabytes a second with four messages under way; the receiver answers each by 8 bytes.
double bandwidth(bool raw, const std::string& transports, std::size_t bytes, std::size_t count) {
  return run_processes(2, [&](unsigned rank, table& shared) {
    auto wires = open_channel(raw, transports, rank, shared);
    const auto payload = filled(rank == 0 ? bytes : 8);
    std::size_t posted = 0;
    std::size_t answered = 0;
    auto start = clock_type::now();
    while (answered < count) {
      const auto warm = count / 5;
      if (rank == 0)
        for (; posted < count && posted < answered + 4; ++posted)
          wires->post(payload);
      const auto came = wires->receive();
      for (std::size_t i = 0; i < came && rank == 1; ++i)
        wires->post(payload);
      if (answered < warm && answered + came >= warm)
        start = clock_type::now();
      answered += came;
    }
    if (rank == 0)
      shared.result = static_cast<double>(bytes) * static_cast<double>(count - count / 5)
                      / microseconds_since(start) / 1000;
    leave(*wires, shared);
  });
}

// -- all-reduce ----------------------------------------------------------------------------------

double time_of_reductions(compute::collective& group, std::size_t elements, std::size_t rounds) {
  std::vector<float> values(elements, 1.0f);
  std::vector<double> times;
  for (std::size_t i = 0; i < rounds + rounds / 10; ++i) {
    std::fill(values.begin(), values.end(), 1.0f);
    const auto start = clock_type::now();
    check(group.all_reduce_sum(values).has_value(), "members reduce");
    if (i >= rounds / 10)
      times.push_back(microseconds_since(start));
    check(values.back() == static_cast<float>(group.size()), "a sum is right");
  }
  return median(times);
}

double reduce_in_memory(unsigned processes, std::size_t elements, std::size_t rounds) {
  auto segment =
    wire::shared_segment::create(wire::shared_memory_collective::segment_bytes(processes));
  check(segment.has_value(), "a benchmark has memory");
  const auto told = segment->describe();
  return run_processes(processes, [&](unsigned rank, table& shared) {
    auto mine = wire::shared_segment::open(told);
    check(mine.has_value(), "a segment is opened");
    auto group = wire::shared_memory_collective::make(std::move(*mine), rank, processes, {});
    check(group.has_value(), "a group is made");
    const auto found = time_of_reductions(**group, elements, rounds);
    if (rank == 0)
      shared.result = found;
  });
}

double reduce_over_frames(unsigned processes, std::size_t elements, std::size_t rounds) {
  return run_processes(processes, [&](unsigned rank, table& shared) {
    wire::ucx_options options;
    options.transports = over_memory;
    auto wires = std::move(*wire::make_ucx_transport(options));
    wires->start_epoch(epoch_id{1}, rank, {});
    const auto mine = wires->address().bytes;
    shared.address_bytes[rank] = mine.size();
    std::memcpy(shared.address[rank], mine.data(), mine.size());
    shared.meet(processes);
    std::vector<wire::peer_key> keys;
    for (unsigned m = 0; m < processes; ++m)
      keys.push_back(m);
    auto made = wire::endpoint_collective::make(*wires, keys, rank, {.epoch = epoch_id{1}});
    auto& group = **made;
    wires->on_frame(
      [&](wire::peer_key from, wire::frame&& f) { group.accept(from, std::move(f)); });
    for (unsigned m = 0; m < processes; ++m) {
      const auto* at = shared.address[m];
      if (m != rank)
        check(wires->connect(m, {{at, at + shared.address_bytes[m]}}).has_value(),
              "a peer is there");
    }
    const auto found = time_of_reductions(group, elements, rounds);
    if (rank == 0)
      shared.result = found;
    [[maybe_unused]] const auto closed = wires->close(std::chrono::seconds(2));
  });
}

// -- what is printed -----------------------------------------------------------------------------

void compare_paths(const char* measure,
                   const char* unit,
                   const std::string& transports,
                   std::size_t bytes,
                   auto run) {
  std::vector<double> raw;
  std::vector<double> ours;
  for (int i = 0; i < 3; ++i) { // In turn, so that a busy moment of the machine meets both.
    raw.push_back(run(true));
    ours.push_back(run(false));
  }
  fmt::print("{{\"measure\":\"{}\",\"wires\":\"{}\",\"bytes\":{},\"raw_ucx_{}\":{:.3f},"
             "\"transport_{}\":{:.3f},\"ratio\":{:.3f}}}\n",
             measure,
             transports == over_tcp ? "tcp" : "shared memory",
             bytes,
             unit,
             median(raw),
             unit,
             median(ours),
             median(ours) / median(raw));
  std::fflush(stdout);
}

void measure_wires(const std::string& transports) {
  const std::map<std::size_t, std::size_t> rounds{{64, 4'000}, {8 << 10, 2'000}, {256 << 10, 400}};
  for (const auto& [bytes, count] : rounds)
    compare_paths("one_way", "us", transports, bytes, [&, b = bytes, n = count](bool raw) {
      return one_way(raw, transports, b, n);
    });
  constexpr std::size_t large = 16 << 20;
  compare_paths("bandwidth", "gb_s", transports, large, [&](bool raw) {
    return bandwidth(raw, transports, large, 40);
  });
}

void measure_reductions(unsigned processes) {
  const std::map<std::size_t, std::size_t> rounds{{8 << 10, 1'000}, {32 << 10, 500}, {1 << 20, 60}};
  for (const auto& [bytes, count] : rounds) {
    const auto elements = bytes / sizeof(float);
    const auto memory = reduce_in_memory(processes, elements, count);
    const auto frames = reduce_over_frames(processes, elements, count);
    fmt::print("{{\"measure\":\"all_reduce\",\"processes\":{},\"bytes\":{},"
               "\"shared_memory_us\":{:.2f},\"frames_us\":{:.2f},\"ratio\":{:.3f}}}\n",
               processes,
               bytes,
               memory,
               frames,
               memory / frames);
    std::fflush(stdout);
  }
}

} // namespace

int main() {
  wire::prepare_environment();
  measure_wires(over_memory);
  measure_wires(over_tcp);
  measure_reductions(2);
  measure_reductions(4);
}
