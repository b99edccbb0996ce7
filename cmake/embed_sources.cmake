# SPDX-License-Identifier: BSD-3-Clause
# quiver_embed_sources(OUTPUT file.cpp NAMES name... SOURCES file...): writes at build time a source
# file that defines quiver::cuda::embedded_sources(), the table of these names and the files' texts.
# This file is also the script that does it: cmake -P with OUTPUT, and NAMES
# and SOURCES separated by commas.
if(CMAKE_SCRIPT_MODE_FILE)
    string(REPLACE "," ";" names "${NAMES}")
    string(REPLACE "," ";" sources "${SOURCES}")
    set(text "// Generated from the device sources.\n#include \"kernels/cuda/embedded_sources.hpp\"\n\n")
    string(APPEND text "namespace quiver::cuda {\nnamespace {\n\n")
    string(APPEND text "constexpr EmbeddedSource table[] = {\n")
    foreach(name source IN ZIP_LISTS names sources)
        file(READ ${source} content)
        string(APPEND text "    {\"${name}\",\n     R\"embedded(${content})embedded\"},\n")
    endforeach()
    string(APPEND text "};\n\n}  // namespace\n\n")
    string(APPEND text "std::span<const EmbeddedSource> embedded_sources() {\n    return table;\n}\n\n")
    string(APPEND text "}  // namespace quiver::cuda\n")
    file(WRITE ${OUTPUT} "${text}")
    return()
endif()

set(QUIVER_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(quiver_embed_sources)
    cmake_parse_arguments(arg "" "OUTPUT" "NAMES;SOURCES" ${ARGN})
    list(JOIN arg_NAMES "," names)
    list(JOIN arg_SOURCES "," sources)
    add_custom_command(OUTPUT ${arg_OUTPUT}
        COMMAND ${CMAKE_COMMAND} -DOUTPUT=${arg_OUTPUT} "-DNAMES=${names}" "-DSOURCES=${sources}"
            -P ${QUIVER_EMBED_SCRIPT}
        DEPENDS ${arg_SOURCES} ${QUIVER_EMBED_SCRIPT}
        COMMENT "Embedding the device sources" VERBATIM)
endfunction()
