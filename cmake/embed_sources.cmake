# SPDX-License-Identifier: BSD-3-Clause
# quiver_embed_sources(OUTPUT file.cpp NAMES name... SOURCES file...) writes a source file at build
# time. It defines quiver::cuda::embedded_sources(), the table of these names and the texts of the
# files.
# quiver_embed_text(OUTPUT file.cpp FUNCTION name SOURCE file) embeds one text, which the function
# const char* quiver::cuda::name() of kernels/cuda/shipped_tuning.hpp returns.
# This file is also the script that the build runs: cmake -P with OUTPUT and either NAMES and SOURCES,
# separated by commas, or FUNCTION and SOURCE.
if(CMAKE_SCRIPT_MODE_FILE AND FUNCTION)
    file(READ ${SOURCE} content)
    string(LENGTH "${content}" length)
    set(pieces "")
    # Some compilers limit a string literal, before adjacent literals are joined, to 16 KB.
    foreach(begin RANGE 0 ${length} 16000)
        string(SUBSTRING "${content}" ${begin} 16000 piece)
        string(APPEND pieces "    R\"embedded(${piece})embedded\"\n")
    endforeach()
    file(WRITE ${OUTPUT} "// Generated from the tuning table.
#include \"kernels/cuda/shipped_tuning.hpp\"

namespace quiver::cuda {

const char* ${FUNCTION}() {
    return
${pieces}        ;
}

}  // namespace quiver::cuda
")
    return()
endif()
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
function(quiver_embed_text)
    cmake_parse_arguments(arg "" "OUTPUT;FUNCTION;SOURCE" "" ${ARGN})
    add_custom_command(OUTPUT ${arg_OUTPUT}
        COMMAND ${CMAKE_COMMAND} -DOUTPUT=${arg_OUTPUT} -DFUNCTION=${arg_FUNCTION}
            -DSOURCE=${arg_SOURCE} -P ${QUIVER_EMBED_SCRIPT}
        DEPENDS ${arg_SOURCE} ${QUIVER_EMBED_SCRIPT}
        COMMENT "Embedding ${arg_SOURCE}" VERBATIM)
endfunction()
