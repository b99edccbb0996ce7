# SPDX-License-Identifier: BSD-3-Clause
# The API reference of the installed headers: target doxygen, if Doxygen is found. Run as a script,
#   cmake -D OUTPUT=FOLDER -P cmake/QuiverDoxygen.cmake
# writes FOLDER/Doxyfile without a compiler or a configured build (docs/build.sh); doxygen then writes FOLDER/html.
if(CMAKE_SCRIPT_MODE_FILE)
    cmake_minimum_required(VERSION 3.25)
    cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH PROJECT_SOURCE_DIR)
    cmake_path(ABSOLUTE_PATH OUTPUT NORMALIZE)
    file(READ ${PROJECT_SOURCE_DIR}/CMakeLists.txt project)
    string(REGEX MATCH "project\\(quiver VERSION ([0-9.]+).*DESCRIPTION \"([^\"]*)\"" match "${project}")
    set(PROJECT_VERSION ${CMAKE_MATCH_1})
    set(PROJECT_DESCRIPTION "${CMAKE_MATCH_2}")
    include(${PROJECT_SOURCE_DIR}/cmake/QuiverHeaders.cmake)
else()
    set(OUTPUT ${PROJECT_BINARY_DIR}/docs)
    find_package(Doxygen QUIET)
endif()
if(CMAKE_SCRIPT_MODE_FILE OR DOXYGEN_FOUND)
    set(inputs docs/api.md ${QUIVER_PUBLIC_HEADERS})
    list(TRANSFORM inputs REPLACE "(.+)" "\"${PROJECT_SOURCE_DIR}/\\1\"")
    list(JOIN inputs " \\\n    " QUIVER_DOXYGEN_INPUT)
    set(QUIVER_DOXYGEN_OUTPUT ${OUTPUT})
    configure_file(${PROJECT_SOURCE_DIR}/docs/Doxyfile.in ${OUTPUT}/Doxyfile @ONLY)
endif()
if(DOXYGEN_FOUND)
    add_custom_target(doxygen COMMAND Doxygen::doxygen ${OUTPUT}/Doxyfile
        COMMENT "API reference in ${OUTPUT}/html" VERBATIM)
endif()
