# SPDX-License-Identifier: BSD-3-Clause
# Target doxygen, where Doxygen is found: the API reference of the headers that are installed.
find_package(Doxygen QUIET)
if(DOXYGEN_FOUND)
    file(GLOB pages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} docs/*.md)
    set(inputs README.md ${pages} ${QUIVER_PUBLIC_HEADERS})
    list(TRANSFORM inputs REPLACE "(.+)" "\"${PROJECT_SOURCE_DIR}/\\1\"")
    list(JOIN inputs " \\\n    " QUIVER_DOXYGEN_INPUT)
    configure_file(docs/Doxyfile.in ${PROJECT_BINARY_DIR}/docs/Doxyfile @ONLY)
    add_custom_target(doxygen COMMAND Doxygen::doxygen ${PROJECT_BINARY_DIR}/docs/Doxyfile
        COMMENT "API reference in ${PROJECT_BINARY_DIR}/docs/html" VERBATIM)
endif()
