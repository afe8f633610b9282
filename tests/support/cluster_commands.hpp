#pragma once
// What tests of clusters do again and again: name options, start a node, wait until it or the
// cluster says something.

#include "tests/support/crew.hpp" // status_becomes

#include <chrono>
#include <string>
#include <vector>

namespace troupe::tests {

/// Four layers of hidden 64, written once a program.
const served_model& small_model();

/// One process with all ranks: quick to start, and the same arithmetic.
cluster_shape
in_one_process(const std::filesystem::path& model, std::size_t pipeline, std::size_t tensor = 1);

/// "--set" before each option.
std::vector<std::string> set(const std::vector<std::string>& options);

std::vector<std::string> with(std::vector<std::string> head, const std::vector<std::string>& tail);

/// `troupe node FILE --name <name>`, with options as for set().
test::process start_node(const cluster& where,
                         const std::string& name,
                         const std::vector<std::string>& options = {});

/// Hears lines until one mentions `words`.
bool hears(test::process& child,
           const std::string& words,
           std::chrono::seconds patience = std::chrono::seconds{20});

} // namespace troupe::tests
