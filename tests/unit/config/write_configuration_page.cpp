// Writes docs/configuration.md from the table of settings: write_configuration_page FILE.

#include "config/settings_reference.hpp"

#include <cstdio>
#include <fstream>

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: write_configuration_page FILE\n");
    return 2;
  }
  std::ofstream file{arguments[1]};
  file << troupe::settings_reference();
  file.close();
  if (!file)
    std::fprintf(stderr, "%s: cannot be written\n", arguments[1]);
  return file ? 0 : 1;
}
