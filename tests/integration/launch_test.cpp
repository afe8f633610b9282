// How a cluster file that cannot work is refused: by every command, in the same words, before
// anything starts; and that one that works speaks to this host alone.

#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

using namespace troupe;
using namespace troupe::tests;

namespace {

using words = std::vector<std::string>;

const std::vector<words> commands{{"config", "FILE"},
                                  {"plan", "FILE"},
                                  {"generate", "FILE", "--prompt", "In"},
                                  {"up", "FILE"},
                                  {"node", "FILE", "--name", "a"},
                                  {"status", "FILE"},
                                  {"doctor", "FILE"}};

/// Every command refuses it with exit code 2 (the doctor, which goes on, with 1), quickly, in the
/// same words, and leaves nothing behind.
void check_refused(const std::string& text, const std::vector<std::string>& parts) {
  const cluster which{text};
  for (const auto& command : commands) {
    const auto begun = std::chrono::steady_clock::now();
    const auto ran = which.run(command, 20);
    BOOST_TEST((ran.code == 2 || (command[0] == "doctor" && ran.code == 1)),
               command[0] << " gave " << ran.code << ": " << ran.all());
    for (const auto& part : parts)
      BOOST_TEST(ran.mentions(part), command[0] << " does not say " << part << ": " << ran.all());
    BOOST_TEST((std::chrono::steady_clock::now() - begun < std::chrono::seconds{5}));
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{which.folder().path()})
    files += entry.is_regular_file() ? 1 : 0;
  BOOST_TEST(files == 1u); // the cluster file: nobody claimed a run folder
}

std::string file(const std::string& parallel, const std::vector<std::string>& nodes) {
  auto text = "[model]\npath = \"demo\"\n[parallel]\n" + parallel + "\n";
  char name = 'a';
  for (const auto& node : nodes)
    text += std::string{"[[node]]\nname = \""} + name++ + "\"\nthreads = 1\n" + node + "\n";
  return text;
}

/// The ends of this process's sockets as /proc/net writes them; a column is "ADDRESS:PORT" in hex.
std::vector<std::string> internet_sockets_of(pid_t pid) {
  std::set<std::string> inodes;
  const auto open = "/proc/" + std::to_string(pid) + "/fd";
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator{open, gone}) {
    const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:["))
      inodes.insert(target.substr(8, target.size() - 9));
  }
  std::vector<std::string> ends;
  for (const auto* table : {"tcp", "tcp6", "udp", "udp6"}) {
    std::ifstream in{std::string{"/proc/net/"} + table};
    for (std::string line; std::getline(in, line);) {
      std::istringstream columns{line};
      std::string number, local, remote, skipped, inode;
      columns >> number >> local >> remote;
      for (int i = 0; i < 6; ++i)
        columns >> skipped;
      columns >> inode;
      if (inodes.contains(inode))
        ends.insert(ends.end(), {local, remote});
    }
  }
  return ends;
}

std::vector<pid_t> processes_of(const cluster& which) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos)
      continue;
    std::ifstream in{entry.path() / "cmdline"};
    const std::string line{std::istreambuf_iterator<char>(in), {}};
    if (line.find(which.folder().path().string()) != std::string::npos)
      found.push_back(std::stoi(name));
  }
  return found;
}

} // namespace

BOOST_AUTO_TEST_CASE(A15_the_head_may_be_a_stage_and_have_two_names) {
  // The head holds the first stage in every example; here also as another node of its own address.
  const cluster both{file("pipeline = 2", {"", "bind = \"localhost\"\nadvertise = \"localhost\""})};
  const auto ran = both.run({"generate", "FILE", "--prompt", "In", "--max-tokens", "3", "-q"});
  BOOST_TEST(ran.code == 0, ran.all());
  for (const std::string other : {"127.0.0.1", "localhost"})
    check_refused(
      file("pipeline = 2",
           {"port = 7001", "port = 7001\nbind = \"" + other + "\"\nadvertise = \"" + other + "\""}),
      {"nodes a and b have the same address and port"});
}

BOOST_AUTO_TEST_CASE(A17_one_parser_refuses_a_split_in_every_command) {
  for (const std::string weight : {"0", "-1", "\"1/1\"", "[1, 1]", "nan"})
    check_refused(file("pipeline = 2", {"", "weight = " + weight}), {"weight", "cluster.toml:12"});
  check_refused(file("pipeline = 2\nlayers = [[0, 3]]", {"", ""}),
                {"layers names 1 stages, but pipeline is 2"});
  check_refused(file("pipeline = 2\nlayers = [[0, 3], [4, 6]]", {"", ""}), {"layers"});
  check_refused(file("pipeline = 2\nlayers = [[0, 0], [0, 6]]", {"", ""}), {"layers"});
  check_refused(file("pipeline = 2\nlayers = \"3,3\"", {"", ""}), {"layers"});
}

BOOST_AUTO_TEST_CASE(A19_the_sum_of_ranks_is_told_before_anything_starts) {
  check_refused(file("pipeline = 2\ntensor = 2", {"", "", ""}),
                {"3 nodes with 3 ranks in all, but pipeline 2 x tensor 2 needs 4"});
}

BOOST_AUTO_TEST_CASE(A01_A05_shapes_that_the_model_cannot_have_are_refused_with_those_it_can) {
  const auto refused = [](const std::string& parallel, const std::string& node) {
    const cluster which{file(parallel, {node})};
    const auto ran = which.run({"generate", "FILE", "--prompt", "In"}, 20);
    BOOST_TEST(ran.code == 2, ran.all());
    return ran;
  };
  const auto wide = refused("tensor = 9", "ranks = 9"); // eight heads
  BOOST_TEST(wide.mentions("tensor size 9"), wide.all());
  BOOST_TEST(wide.mentions("1 to 8 would work"), wide.all());
  const auto deep = refused("pipeline = 7", "ranks = 7"); // six layers
  BOOST_TEST(deep.mentions("7 stages for 6 layers"), deep.all());
  BOOST_TEST(deep.mentions("1 to 6 stages would work"), deep.all());
}

BOOST_AUTO_TEST_CASE(A27_every_socket_stays_on_this_host) {
  cluster_shape shape;
  compute::random_model wanted;
  wanted.layers = 4;
  const served_model model{wanted};
  shape.model = model.folder();
  shape.pipeline = 2;
  shape.node_more = "transports = \"tcp,self\"";
  const cluster two{shape};
  const serving_cluster served{two};
  two.generate({token_prompt({1, 2, 3}, 4)});
  std::size_t seen = 0;
  for (const auto pid : processes_of(two))
    for (const auto& end : internet_sockets_of(pid)) {
      ++seen;
      // 127.x.x.x is written "xxxxxx7F"; an end that is not connected yet has no address at all.
      const auto address = end.substr(0, end.find(':'));
      const bool is_loopback = address.size() == 8 && address.ends_with("7F");
      const bool is_nobody = address.find_first_not_of('0') == std::string::npos;
      BOOST_TEST((is_loopback || is_nobody), end);
    }
  BOOST_TEST(seen > 0u);
}
