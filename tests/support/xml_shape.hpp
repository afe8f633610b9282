#pragma once
// Whether a picture is a well-formed document, for those that the program draws.

#include <string>
#include <vector>

namespace troupe::tests {

/// Every element is closed, in order: enough for a document without comments or CDATA.
inline bool is_balanced(const std::string& xml) {
  std::vector<std::string> open;
  for (auto at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const auto end = xml.find('>', at);
    if (end == std::string::npos)
      return false;
    const auto tag = xml.substr(at + 1, end - at - 1);
    const auto name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.front() == '/') {
      if (open.empty() || "/" + open.back() != tag)
        return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty();
}

} // namespace troupe::tests
