# cmake -DFOLDER=... -DCHART_JS=... -DMADE=... -P: page.html with its @PARTS@ filled in, as a C++
# source. Text that a <script> cannot hold would end it early: it is refused.
cmake_minimum_required(VERSION 3.22)
file(READ "${FOLDER}/page.html" page)
foreach(part IN ITEMS PAGE_CSS SERVER_JS CLUSTER_JS RATES_JS PLAYGROUND_JS MAIN_JS CHART_JS)
  if("${part}" STREQUAL "CHART_JS")
    set(file "${CHART_JS}")
  else()
    string(TOLOWER "${part}" name)
    string(REPLACE "_" "." name "${name}")
    set(file "${FOLDER}/${name}")
  endif()
  file(READ "${file}" text)
  string(FIND "${text}" "</s" ends)
  if(NOT ends EQUAL -1)
    message(FATAL_ERROR "${file} contains </s, which would end its element")
  endif()
  string(REPLACE "@${part}@" "${text}" page "${page}")
endforeach()
set(source "// Made from actors/serve/page/ by cmake/join_page.cmake.
#include \"actors/serve/page.hpp\"

namespace troupe::actors::serve {

std::string_view page_html() noexcept {
  return R\"troupe_page(")
string(APPEND source "${page}" ")troupe_page\";\n}\n\n} // namespace troupe::actors::serve\n")
file(WRITE "${MADE}" "${source}")
