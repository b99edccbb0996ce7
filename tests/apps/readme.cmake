# SPDX-License-Identifier: BSD-3-Clause
# Every code block of README.md becomes part of a test:
#   cpp    compiled, linked and run; a text block right after it is what it must print
#   sh     run in an empty folder with the command on the PATH, all in one shell, except the blocks
#          that set the machine up
#   cmake  configured in a project of its own
set(readme ${PROJECT_SOURCE_DIR}/README.md)
set(folder ${CMAKE_CURRENT_BINARY_DIR}/readme)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${readme})
file(READ ${readme} rest)
set(commands "set -eux\n")
set(consumer "")
set(examples 0)
set(previous "")
while(TRUE)
    string(FIND "${rest}" "\n```" begin)
    if(begin EQUAL -1)
        break()
    endif()
    math(EXPR begin "${begin} + 4")
    string(SUBSTRING "${rest}" ${begin} -1 rest)
    string(FIND "${rest}" "\n" begin)
    string(SUBSTRING "${rest}" 0 ${begin} language)
    math(EXPR begin "${begin} + 1")
    string(SUBSTRING "${rest}" ${begin} -1 rest)
    string(FIND "${rest}" "```" end)
    string(SUBSTRING "${rest}" 0 ${end} block)
    math(EXPR end "${end} + 3")
    string(SUBSTRING "${rest}" ${end} -1 rest)

    if(language STREQUAL "cpp")
        math(EXPR examples "${examples} + 1")
        set(name readme_example_${examples})
        file(WRITE ${folder}/${name}.new "${block}")
        configure_file(${folder}/${name}.new ${folder}/${name}.cpp COPYONLY)
        add_executable(${name} ${folder}/${name}.cpp)
        target_link_libraries(${name} PRIVATE Quiver::solvers)
    elseif(language STREQUAL "text" AND previous STREQUAL "cpp")
        file(WRITE ${folder}/${name}.expected "${block}")
        quiver_register_test(${name} 1 unit sh -c "$<TARGET_FILE:${name}> | diff ${folder}/${name}.expected -")
    elseif(language STREQUAL "sh")
        if(NOT block MATCHES "bash (apps|tests)/run.sh")
            string(APPEND commands "${block}")
        endif()
    elseif(language STREQUAL "cmake")
        string(APPEND consumer "${block}")
    else()
        message(FATAL_ERROR "README.md: no test runs the block of language '${language}' after '${previous}'")
    endif()
    set(previous ${language})
endwhile()

file(WRITE ${folder}/commands.sh "${commands}")
quiver_register_test(readme_commands 1 unit sh -c
    "folder=$(mktemp -d) && cd \"$folder\" && sh ${folder}/commands.sh && rm -r \"$folder\"")
set_property(TEST readme_commands APPEND PROPERTY ENVIRONMENT
    "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1")
set_property(TEST readme_commands APPEND PROPERTY ENVIRONMENT_MODIFICATION
    "PATH=path_list_prepend:$<TARGET_FILE_DIR:quiver>")

file(WRITE ${folder}/consumer/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
add_executable(my_program ../readme_example_1.cpp)
${consumer}")
file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${folder}/consumer/quiver SYMBOLIC)
quiver_register_test(readme_consumer 1 unit ${CMAKE_COMMAND} -S ${folder}/consumer -B ${folder}/consumer-build
    -DQUIVER_ENABLE_CUDA=OFF)
