#pragma once
// Prometheus' text format, read as strictly as it is written down (exposition format 0.0.4), and
// held against the conventions for names.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace troupe::tests {

struct exposition {
  std::map<std::string, std::string> types; ///< By family.
  std::map<std::string, double> samples;    ///< By name and labels, as they stand.
  std::vector<std::string> mistakes;        ///< Empty: it is right.

  /// Of one sample: `name` or `name{label="value",...}`; a mistake of the test where it is not
  /// there.
  double at(const std::string& sample) const;

  /// Over all samples of that name.
  double sum(const std::string& name) const;
};

exposition read_exposition(const std::string& text);

} // namespace troupe::tests
