// Each kind of fault, at each moment of a cluster's life, on each shape: the answers are those of
// an unharmed run, or end with the status that such a fault has. What was measured is one line of
// docs/faults.md a case.
//
// Shapes that are "apart" have each node on a host of its own (a network namespace), where the
// system allows that, and on this one elsewhere. Without options a fourth of the cases runs, each
// fault at each moment on one of the shapes:
//   fault_matrix                                    what CI asks for
//   fault_matrix -- whole page=docs/faults.md       all of them, and writes their table
//   fault_matrix -- "only=TP 2,stop,recovery"       one of them
//   fault_matrix -- apart ...                       the same with all shapes apart

#include "tests/fault/fault_case.hpp"
#include "tests/support/page_part.hpp"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::tests;

namespace {

std::string milliseconds_text(const std::optional<std::chrono::milliseconds>& time) {
  return time ? fmt::format("{} ms", time->count()) : "-";
}

std::string line_of(const fault_shape& shape, const fault_case& one, const case_result& got) {
  return fmt::format("| {}{} | {} | {} | {} | {} | {} | {} | {} |\n",
                     shape.name,
                     is_apart(shape) ? ", apart" : "",
                     one.what,
                     to_string(one.when),
                     milliseconds_text(got.noticed),
                     milliseconds_text(got.resumed),
                     got.rows_again,
                     got.lost,
                     got.ending);
}

const std::string head_of_table =
  "| Shape | Fault | Moment | Noticed after | Tokens again after | Rows computed again | Requests "
  "lost | How it ends |\n|---|---|---|---|---|---|---|---|\n";

} // namespace

BOOST_AUTO_TEST_CASE(a_member_of_a_group_may_miss_the_end_of_a_step_that_was_committed) {
  const auto& pair = fault_shapes().at(2);
  BOOST_REQUIRE(pair.tensor == 2u);
  fault_rig rig{pair};
  // Rank 0 is through with a chunk of a prompt, and its next frame ends the link on which rank 1
  // still has the end of that chunk: often, not always.
  for (int time = 0; time < 4; ++time)
    BOOST_TEST(rig.run({"corrupt", fault_at::prefill}).lost == 0u);
}

BOOST_AUTO_TEST_CASE(every_fault_at_every_moment_on_every_shape_changes_no_token) {
  const bool whole = has_test_option("whole");
  const auto only = test_option("only");
  const auto& shapes = fault_shapes();
  std::string table = head_of_table;
  std::size_t done = 0;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    std::optional<fault_rig>
      rig; // The cases of a shape share a cluster, all but those at its start.
    for (std::size_t f = 0; f < matrix_faults.size(); ++f)
      for (std::size_t m = 0; m < fault_moments.size(); ++m) {
        const fault_case one{matrix_faults[f], fault_moments[m]};
        if (!is_possible(one) || (!whole && !only && (f + m) % shapes.size() != s))
          continue;
        if (only && *only != fmt::format("{},{},{}", shapes[s].name, one.what, to_string(one.when)))
          continue;
        BOOST_TEST_CONTEXT(shapes[s].name << ", " << one.what << " at " << to_string(one.when)) {
          if (one.when == fault_at::load)
            rig.reset();
          else if (!rig)
            rig.emplace(shapes[s]);
          const auto got = rig ? rig->run(one) : run_at_start(shapes[s], one);
          table += line_of(shapes[s], one, got);
          BOOST_TEST(got.lost == 0u);
          BOOST_TEST_MESSAGE(line_of(shapes[s], one, got));
          ++done;
        }
      }
  }
  BOOST_TEST((only || done >= matrix_faults.size() * fault_moments.size() - 1));
  if (const auto page = test_option("page"))
    write_page_part(*page, "matrix", table);
}
