# Finds the C++ Actor Framework where it ships no CMake files of its own (Debian, Ubuntu).
# Defines CAF::core, CAF::io, CAF::openssl. Headers are SYSTEM: their warnings are not ours.
find_path(CAF_INCLUDE_DIR caf/all.hpp)
set(CAF_VERSION "")
if(CAF_INCLUDE_DIR)
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" _caf_version REGEX "#define CAF_VERSION [0-9]+")
  string(REGEX REPLACE ".*CAF_VERSION ([0-9]+).*" "\\1" _caf_version "${_caf_version}")
  if(_caf_version)
    math(EXPR _caf_major "${_caf_version} / 10000")
    math(EXPR _caf_minor "${_caf_version} / 100 % 100")
    math(EXPR _caf_patch "${_caf_version} % 100")
    set(CAF_VERSION "${_caf_major}.${_caf_minor}.${_caf_patch}")
  endif()
endif()

set(_caf_libraries "")
foreach(_component IN LISTS CAF_FIND_COMPONENTS)
  find_library(CAF_${_component}_LIBRARY caf_${_component})
  list(APPEND _caf_libraries CAF_${_component}_LIBRARY)
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF
  REQUIRED_VARS CAF_INCLUDE_DIR ${_caf_libraries}
  VERSION_VAR CAF_VERSION)

if(CAF_FOUND)
  foreach(_component IN LISTS CAF_FIND_COMPONENTS)
    if(NOT TARGET CAF::${_component})
      add_library(CAF::${_component} UNKNOWN IMPORTED)
      set_target_properties(CAF::${_component} PROPERTIES
        IMPORTED_LOCATION "${CAF_${_component}_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
        INTERFACE_COMPILE_DEFINITIONS CAF_ENABLE_TYPE_ID_CHECKS)
    endif()
  endforeach()
endif()
mark_as_advanced(CAF_INCLUDE_DIR ${_caf_libraries})
