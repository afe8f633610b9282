# Puts the page of actors/serve/page/ together, with Chart.js of the Debian package libjs-chart.js
# inside, and makes it a source of a target: one file that a browser needs no other for.
find_file(TROUPE_CHART_JS chart.min.js
  PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist
  DOC "Chart.js 3 in one file" REQUIRED)

function(embed_page target)
  set(folder "${PROJECT_SOURCE_DIR}/actors/serve/page")
  set(made "${CMAKE_CURRENT_BINARY_DIR}/page_html.cpp")
  set(script "${PROJECT_SOURCE_DIR}/cmake/join_page.cmake")
  set(parts page.html page.css server.js cluster.js rates.js playground.js main.js)
  list(TRANSFORM parts PREPEND "${folder}/")
  add_custom_command(OUTPUT "${made}"
    COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${folder}" "-DCHART_JS=${TROUPE_CHART_JS}"
      "-DMADE=${made}" -P "${script}"
    DEPENDS ${parts} "${TROUPE_CHART_JS}" "${script}"
    COMMENT "Putting the page together" VERBATIM)
  target_sources(${target} PRIVATE "${made}")
endfunction()
