#include "tests/support/lan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/test/unit_test.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <sys/mount.h>
#include <unistd.h>
#include <utility>

namespace troupe::tests {

namespace {

using namespace std::chrono_literals;

bool write_to(const char* file, const std::string& text) {
  const int out = ::open(file, O_WRONLY);
  const bool written =
    out >= 0 && ::write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (out >= 0)
    ::close(out);
  return written;
}

// Without root, a user namespace in which we are.
bool move_out_unprivileged() {
  const auto user = ::geteuid();
  const auto group = ::getegid();
  return ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && write_to("/proc/self/setgroups", "deny")
         && write_to("/proc/self/uid_map", fmt::format("0 {} 1", user))
         && write_to("/proc/self/gid_map", fmt::format("0 {} 1", group));
}

outcome try_tool(std::vector<std::string> command) {
  command.insert(command.begin(), "/usr/bin/env");
  return outcome_of(test::process::run(command, {}, true), 10);
}

void tool(const std::vector<std::string>& command) {
  const auto ran = try_tool(command);
  BOOST_REQUIRE_MESSAGE(ran.code == 0, fmt::format("{}", fmt::join(command, " ")) << ran.all());
}

// Holds the namespaces of a host until the test lets go of it. UCX looks for interfaces in /sys,
// which shows those of the namespace that mounted it.
const test::role holder("lan_host", [](test::parent& told) {
  const bool moved =
    ::unshare(CLONE_NEWNET | CLONE_NEWNS) == 0
    && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0
    && ::mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0
    && ::mount(told.arguments().at(0).c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0;
  told.say(moved ? "ready" : std::strerror(errno));
  while (moved && told.hear(1h)) {
  }
  return moved ? 0 : 1;
});

constexpr std::size_t networks = 2;

// A namespace outlives its holder for a moment, and its plugs with it: each lan has other names.
int lans = 0;
// All of them have the same addresses.
bool has_lan = false;

std::string switch_name(std::size_t net) {
  return fmt::format("switch{}-{}", lans, net);
}

void join_switches(std::size_t host, pid_t where) {
  for (std::size_t net = 0; net < networks; ++net) {
    const auto plug = fmt::format("plug{}-{}-{}", lans, net, host);
    tool({"ip",
          "link",
          "add",
          plug,
          "type",
          "veth",
          "peer",
          "name",
          fmt::format("net{}", net),
          "netns",
          std::to_string(where)});
    tool({"ip", "link", "set", plug, "master", switch_name(net), "up"});
  }
}

// "0100007F:1B58" of /proc/net/tcp; the word is in the host's order.
std::string dotted(const std::string& field) {
  const auto word = std::stoul(field.substr(0, 8), nullptr, 16);
  return fmt::format(
    "{}.{}.{}.{}", word & 255U, word >> 8U & 255U, word >> 16U & 255U, word >> 24U);
}

} // namespace

const std::string& why_no_hosts() {
  static const std::string why = [] {
    if (try_tool({"ip", "-Version"}).code != 0 || try_tool({"nsenter", "--version"}).code != 0)
      return std::string{"there is no ip or nsenter (iproute2, util-linux)"};
    if (::unshare(CLONE_NEWNET) != 0 && !move_out_unprivileged())
      return fmt::format("this system allows no network namespace: {}", std::strerror(errno));
    for (const auto& command : {std::vector<std::string>{"ip", "link", "set", "lo", "up"},
                                {"ip", "link", "add", "probe", "type", "bridge"},
                                {"ip", "link", "add", "probe0", "type", "veth"},
                                {"ip", "link", "del", "probe0"},
                                {"ip", "link", "del", "probe"}})
      if (const auto ran = try_tool(command); ran.code != 0)
        return fmt::format("`{}` fails: {}", fmt::join(command, " "), ran.all());
    return std::string{};
  }();
  return why;
}

lan::lan(std::size_t count) {
  BOOST_REQUIRE_MESSAGE(why_no_hosts().empty(), why_no_hosts());
  BOOST_REQUIRE_MESSAGE(!std::exchange(has_lan, true), "one lan at a time");
  ++lans;
  for (std::size_t net = 0; net < networks; ++net) {
    tool({"ip", "link", "add", switch_name(net), "type", "bridge"});
    tool({"ip", "link", "set", switch_name(net), "up"});
  }
  tool({"ip", "addr", "add", "10.77.0.254/24", "dev", switch_name(0)});
  std::string names = "127.0.0.1 localhost\n";
  for (std::size_t host = 1; host <= count; ++host)
    names += fmt::format("{} {}\n", address(host), name(host));
  std::ofstream{names_ / "hosts"} << names;
  for (std::size_t host = 1; host <= count; ++host) {
    holders_.push_back(test::process::start("lan_host", {names_ / "hosts"}));
    const auto heard = holders_.back().hear(5s);
    BOOST_REQUIRE_MESSAGE(heard == "ready", heard.value_or("no word from the holder"));
    join_switches(host, holders_.back().pid());
    ip(host, {"addr", "add", address(host) + "/24", "dev", "net0"});
    ip(host, {"addr", "add", other_address(host) + "/24", "dev", "net1"});
    for (const auto* interface : {"lo", "net0", "net1"})
      ip(host, {"link", "set", interface, "up"});
  }
}

lan::~lan() {
  for (std::size_t net = 0; net < networks; ++net)
    try_tool({"ip", "link", "del", switch_name(net)});
  has_lan = false;
}

std::string lan::address(std::size_t host) {
  return fmt::format("10.77.0.{}", host);
}

std::string lan::name(std::size_t host) {
  return fmt::format("host{}.lab.example", host);
}

std::string lan::other_address(std::size_t host) {
  return fmt::format("172.17.0.{}", host);
}

std::vector<std::string> lan::inside(std::size_t host, std::vector<std::string> command) const {
  std::vector<std::string> whole{
    "/usr/bin/env",
    "nsenter",
    fmt::format("--net=/proc/{}/ns/net", holders_.at(host - 1).pid()),
    fmt::format("--mount=/proc/{}/ns/mnt", holders_.at(host - 1).pid())};
  whole.insert(whole.end(), command.begin(), command.end());
  return whole;
}

test::process lan::start(std::size_t host,
                         std::vector<std::string> command,
                         const std::vector<std::string>& environment) const {
  return test::process::run(inside(host, std::move(command)), environment, true);
}

outcome lan::run(std::size_t host,
                 std::vector<std::string> command,
                 const std::vector<std::string>& environment,
                 int seconds) const {
  return outcome_of(start(host, std::move(command), environment), seconds);
}

void lan::ip(std::size_t host, std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), "ip");
  const auto ran = run(host, arguments);
  BOOST_REQUIRE_MESSAGE(ran.code == 0, fmt::format("{}: {}", fmt::join(arguments, " "), ran.all()));
}

std::vector<std::string> lan::tcp_addresses(std::size_t host) const {
  std::vector<std::string> found;
  for (const auto& line : run(host, {"cat", "/proc/net/tcp"}).lines) {
    std::istringstream fields{line};
    std::string slot;
    std::string local;
    if (fields >> slot >> local && slot != "sl")
      found.push_back(dotted(local));
  }
  // A line of IPv6 is never expected: it is told as it is.
  for (const auto& line : run(host, {"cat", "/proc/net/tcp6"}).lines)
    if (line.find("local_address") == std::string::npos)
      found.push_back(line);
  return found;
}

std::uint64_t lan::bytes_sent(std::size_t host, const std::string& interface) const {
  for (auto line : run(host, {"cat", "/proc/net/dev"}).lines) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, colon).find(interface) == std::string::npos)
      continue;
    std::istringstream fields{line.substr(colon + 1)};
    std::array<std::uint64_t, 9> counts{}; // eight of what came in, then the bytes that went out
    for (auto& count : counts)
      fields >> count;
    return counts.back();
  }
  BOOST_FAIL("no interface " << interface);
  return 0;
}

} // namespace troupe::tests
