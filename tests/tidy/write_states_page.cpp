// write_states_page FILE: docs/states.md from the phase tables.
#include "tests/tidy/states_page.hpp"

#include <cstdio>
#include <fstream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_states_page FILE\n");
    return 2;
  }
  std::ofstream out(argv[1], std::ios::binary | std::ios::trunc);
  out << troupe::tidy::states_page();
  out.close();
  return out ? 0 : 1;
}
