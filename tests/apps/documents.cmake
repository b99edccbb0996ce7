# SPDX-License-Identifier: BSD-3-Clause
# Every code block of the documents listed below becomes part of a test:
#   cpp    compiled and linked; if a text block follows directly, the program is run and must print this text
#   sh     all blocks of a document run in one shell, in an empty folder, with the command on the PATH. Omitted are
#          blocks that call `pip install` or a script of apps/, tests/ or docs/ and, in a build without HDF5, the lines
#          with .h5 files. If a text block follows directly, the output must contain each of its lines; "..." stands
#          for any characters, or lines.
#   c, fortran   as cpp, with libquiver
#   python run if the build has the Python package; must print the text block that follows directly, else nothing
#   cmake  configured as a separate project with the first program of the document
# A block of any other language is an error, so that no block is untested.

# Finds the next code block in `rest`. Sets `found` and, if there is one, `language`, `block` and `rest` (the text
# after the block).
macro(quiver_next_block)
    set(found FALSE)
    string(FIND "${rest}" "\n```" begin)
    if(NOT begin EQUAL -1)
        set(found TRUE)
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
    endif()
endmacro()

# Adds the tests NAME_example_N, NAME_commands and NAME_consumer of DOCUMENT (a path relative to the project).
function(quiver_document_tests name document)
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/documents/${name})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${document})
    file(READ ${PROJECT_SOURCE_DIR}/${document} rest)
    set(commands "")
    set(consumer "")
    set(examples 0)
    set(programs 0)
    set(outputs 0)
    set(previous "")
    set(shell_block "")
    quiver_next_block()
    while(found)
        if(language STREQUAL "text" AND previous STREQUAL "sh" AND NOT shell_block STREQUAL "")
            math(EXPR outputs "${outputs} + 1")
            file(WRITE ${folder}/output_${outputs}.expected "${block}")
            string(APPEND commands "{\n${shell_block}} > printed
sh ${CMAKE_CURRENT_SOURCE_DIR}/expect_lines.sh ${folder}/output_${outputs}.expected printed\n")
            set(shell_block "")
        else()
            string(APPEND commands "${shell_block}")
            set(shell_block "")
            if(language STREQUAL "cpp")
                math(EXPR examples "${examples} + 1")
                set(program ${name}_example_${examples})
                file(WRITE ${folder}/${program}.new "${block}")
                configure_file(${folder}/${program}.new ${folder}/${program}.cpp COPYONLY)
                add_executable(${program} ${folder}/${program}.cpp)
                target_link_libraries(${program} PRIVATE Quiver::solvers)
            elseif(language STREQUAL "c" OR language STREQUAL "fortran")
                math(EXPR examples "${examples} + 1")
                set(program ${name}_example_${examples})
                string(REGEX REPLACE "ortran$" "90" suffix ${language})
                file(WRITE ${folder}/${program}.new "${block}")
                configure_file(${folder}/${program}.new ${folder}/${program}.${suffix} COPYONLY)
                add_executable(${program} ${folder}/${program}.${suffix})
                target_link_libraries(${program} PRIVATE Quiver::${language} m)
                set_target_properties(${program} PROPERTIES Fortran_MODULE_DIRECTORY ${folder}/${program}_modules)
            elseif(language STREQUAL "text" AND previous MATCHES "^(c|cpp|fortran)$")
                file(WRITE ${folder}/${program}.expected "${block}")
                quiver_register_test(${program} 1 unit
                    sh -c "$<TARGET_FILE:${program}> | diff ${folder}/${program}.expected -")
            elseif(language STREQUAL "python")
                math(EXPR programs "${programs} + 1")
                set(program ${name}_python_${programs})
                file(WRITE ${folder}/${program}.py "${block}")
                file(WRITE ${folder}/${program}.expected "")
                if(QUIVER_PYTHON)
                    quiver_register_test(${program} 1 unit
                        sh -c "${Python_EXECUTABLE} ${folder}/${program}.py | diff ${folder}/${program}.expected -")
                    set_property(TEST ${program} APPEND PROPERTY ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python")
                endif()
            elseif(language STREQUAL "text" AND previous STREQUAL "python")
                file(WRITE ${folder}/${program}.expected "${block}")
            elseif(language STREQUAL "sh")
                set(shell_block "${block}")
                if(NOT QUIVER_HAVE_HDF5)
                    string(REGEX REPLACE "[^\n]*\\.h5[^\n]*\n" "" shell_block "${shell_block}")
                endif()
                if(shell_block MATCHES "bash (apps|tests|docs)/|pip install")
                    set(shell_block "")
                endif()
            elseif(language STREQUAL "cmake")
                string(APPEND consumer "${block}")
            else()
                message(FATAL_ERROR "${document}: no test runs the block of language '${language}' after '${previous}'")
            endif()
        endif()
        set(previous "${language}")
        quiver_next_block()
    endwhile()
    string(APPEND commands "${shell_block}")

    if(NOT commands STREQUAL "")
        file(WRITE ${folder}/commands.sh "set -eux\n${commands}")
        quiver_register_test(${name}_commands 1 unit sh -c
            "folder=$(mktemp -d) && cd \"$folder\" && sh ${folder}/commands.sh && rm -r \"$folder\"")
        set_property(TEST ${name}_commands APPEND PROPERTY ENVIRONMENT
            "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1")
        set_property(TEST ${name}_commands APPEND PROPERTY ENVIRONMENT_MODIFICATION
            "PATH=path_list_prepend:$<TARGET_FILE_DIR:quiver>")
    endif()

    if(NOT consumer STREQUAL "")
        file(WRITE ${folder}/consumer/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
add_executable(my_program ../${name}_example_1.cpp)
${consumer}")
        file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${folder}/consumer/quiver SYMBOLIC)
        quiver_register_test(${name}_consumer 1 unit
            ${CMAKE_COMMAND} -S ${folder}/consumer -B ${folder}/consumer-build -DQUIVER_ENABLE_CUDA=OFF)
    endif()
endfunction()

quiver_document_tests(readme README.md)
foreach(page abft cli embed exact_diagonalisation kmeans library matrices modes python svd)
    quiver_document_tests(${page} docs/${page}.md)
endforeach()
