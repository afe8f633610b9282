// Limits of control groups, on made-up systems: what a container, a service or a batch job sees.
#include "actors/rank/memory_groups.hpp"
#include "actors/host/host_memory.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

using troupe::actors::memory_left_in_groups;

namespace {

/// A root folder with the files of the kernel that a test needs.
class fake_system {
public:
  void file(const std::string& path, const std::string& text) const {
    const auto whole = folder_.path() / path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream{whole} << text;
  }

  void second_version(const std::string& own, const std::string& shown = "/") const {
    file("proc/self/cgroup", "0::" + own + "\n");
    file("proc/self/mountinfo",
         "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
         "35 22 0:30 "
           + shown + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }

  void first_version(const std::string& own, const std::string& shown = "/") const {
    file("proc/self/cgroup", "11:cpu,cpuacct:/elsewhere\n4:memory:" + own + "\n0::/user.slice\n");
    file("proc/self/mountinfo",
         "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
         "35 31 0:32 "
           + shown + " /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n");
  }

  std::optional<std::size_t> left() const { return memory_left_in_groups(folder_.path()); }

private:
  troupe::tests::temporary_folder folder_;
};

void check(const std::optional<std::size_t>& found, std::size_t wanted) {
  BOOST_REQUIRE(found);
  BOOST_TEST(*found == wanted);
}

const std::string stat_1 = "cache 700\nactive_file 1\ntotal_inactive_file 100\ntotal_active_file "
                           "40\n";

} // namespace

BOOST_AUTO_TEST_CASE(a_system_without_groups_or_limits_says_nothing) {
  const fake_system none;
  BOOST_TEST(!none.left());
  const fake_system unlimited;
  unlimited.second_version("/user.slice");
  unlimited.file("sys/fs/cgroup/user.slice/memory.max", "max\n");
  unlimited.file("sys/fs/cgroup/user.slice/memory.current", "1000\n");
  BOOST_TEST(!unlimited.left());
  const fake_system first;
  first.first_version("/");
  first.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  first.file("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
  BOOST_TEST(!first.left());
}

BOOST_AUTO_TEST_CASE(version_2_gives_what_the_limit_leaves_and_counts_file_pages_as_free) {
  const fake_system container; // with a view of its own: its group is the top
  container.second_version("/");
  container.file("sys/fs/cgroup/memory.max", "10000\n");
  container.file("sys/fs/cgroup/memory.current", "4000\n");
  check(container.left(), 6000);
  container.file("sys/fs/cgroup/memory.stat", "anon 900\ninactive_file 500\nactive_file 250\n");
  check(container.left(), 6750);
  container.file("sys/fs/cgroup/memory.high", "5000\n");
  check(container.left(), 1750);
  container.file("sys/fs/cgroup/memory.current", "9000\n"); // above what throttles
  check(container.left(), 0);
}

BOOST_AUTO_TEST_CASE(the_tightest_group_of_the_hierarchy_counts) {
  const fake_system service;
  service.second_version("/system.slice/troupe.service");
  service.file("sys/fs/cgroup/system.slice/troupe.service/memory.max", "max\n");
  service.file("sys/fs/cgroup/system.slice/troupe.service/memory.current", "1000\n");
  service.file("sys/fs/cgroup/system.slice/memory.max", "8000\n");
  service.file("sys/fs/cgroup/system.slice/memory.current", "7500\n");
  check(service.left(), 500);
  service.file("sys/fs/cgroup/system.slice/troupe.service/memory.max", "1200\n");
  check(service.left(), 200);
  // Another service's limit is none of ours.
  service.file("sys/fs/cgroup/system.slice/other.service/memory.max", "10\n");
  service.file("sys/fs/cgroup/system.slice/other.service/memory.current", "10\n");
  check(service.left(), 200);
}

BOOST_AUTO_TEST_CASE(version_1_walks_up_too) {
  const fake_system job;
  job.first_version("/slurm/job_17");
  job.file("sys/fs/cgroup/memory/slurm/job_17/memory.limit_in_bytes", "3000\n");
  job.file("sys/fs/cgroup/memory/slurm/job_17/memory.usage_in_bytes", "1000\n");
  job.file("sys/fs/cgroup/memory/slurm/job_17/memory.stat", stat_1);
  check(job.left(), 2140);
  job.file("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "2500\n");
  job.file("sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "1500\n");
  check(job.left(), 1000);
  job.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "1600\n");
  job.file("sys/fs/cgroup/memory/memory.usage_in_bytes", "1500\n");
  check(job.left(), 100);
}

BOOST_AUTO_TEST_CASE(a_container_that_is_named_from_outside_finds_its_group_at_the_top) {
  for (const auto* shown : {"/docker/4711", "/", "/somewhere/else"}) {
    const fake_system container;
    container.first_version("/docker/4711", shown);
    container.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000\n");
    container.file("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
    check(container.left(), 2000);
  }
  const fake_system outside; // of its own name space of groups
  outside.second_version("/../other");
  outside.file("sys/fs/cgroup/memory.max", "10000\n");
  outside.file("sys/fs/cgroup/memory.current", "4000\n");
  check(outside.left(), 6000);
}

BOOST_AUTO_TEST_CASE(escaped_paths_are_read) {
  const fake_system unit;
  unit.file("proc/self/cgroup", "0::/a\\x2db.slice/c d\n");
  unit.file("proc/self/mountinfo",
            "35 22 0:30 /a\\134x2db.slice /mnt/my\\040groups rw - cgroup2 cgroup2 rw\n");
  unit.file("mnt/my groups/c d/memory.max", "50\n");
  unit.file("mnt/my groups/c d/memory.current", "20\n");
  check(unit.left(), 30);
}

BOOST_AUTO_TEST_CASE(damaged_tables_are_no_limit) {
  const fake_system odd;
  odd.file("proc/self/cgroup", "\n::\nnothing\n4:memory\n0::/\n");
  odd.file("proc/self/mountinfo", "\n - \n35 31 - cgroup2\n1 2 3 4 - cgroup cgroup\n");
  BOOST_TEST(!odd.left());
}

BOOST_AUTO_TEST_CASE(this_process_may_take_no_more_than_its_groups_leave) {
  const auto left = memory_left_in_groups();
  const auto available = troupe::actors::available_memory_bytes();
  BOOST_TEST_MESSAGE("groups leave " << left.value_or(0) << ", available " << available);
  BOOST_TEST(available > 0u);
  if (left) // other processes of the group go on meanwhile
    BOOST_TEST(available < *left + (std::size_t{1} << 30));
}
