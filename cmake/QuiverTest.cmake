# SPDX-License-Identifier: BSD-3-Clause
# quiver_test(NAME SOURCES file... [RANKS n...] [NIGHTLY n...] [GPU_RANKS n...] [GPU_SHARDS n] [VECTORS v...]
#             [LIBRARIES target...] [UNOPTIMISED])
# Builds test NAME from the sources and quiver_test_main (UNOPTIMISED: at -O0, for tests that leave nearly all work to
# the library) and registers with CTest
#   NAME       label unit  one process, host memory
#   NAME.npN   label mpi   N ranks (RANKS), host memory
#   NAME.nightly.npN, NAME.nightly.V  label nightly  all cases on N ranks (NIGHTLY) and with each of VECTORS; other
#                          tests on several ranks, on a device and with VECTORS take a fifth of them (test::case_step())
#   NAME.V     label unit  one process with QUIVER_VECTORS=V (VECTORS): code for a narrower instruction set than this
#                          processor has
#   NAME.gpu   label gpu   one process, device memory (QUIVER_TEST_PLACE=device), if GPU_RANKS contains 1
#   NAME.gpu.npN  label gpu  N ranks on the GPUs of this machine
#   NAME.gpu.sI  label gpu  in place of NAME.gpu: part I of its cases (GPU_SHARDS), for long tests: one process
#                     would compile all kernels in turn
find_package(GTest REQUIRED)
cmake_host_system_information(RESULT QUIVER_TEST_CORES QUERY NUMBER_OF_LOGICAL_CORES)
# The property PROCESSORS counts half cores, because tests/run.sh gives ctest twice as many jobs as there are cores.
# A test whose processes mostly start, end and wait can then take half a core.
math(EXPR QUIVER_TEST_HALF_CORES "2 * ${QUIVER_TEST_CORES}")
set(QUIVER_TEST_THREADS "" CACHE STRING "OpenMP threads per rank in the tests; empty: an equal share of the cores, at most 8")
set(QUIVER_TEST_TIMEOUT 600 CACHE STRING "Time limit of a test in seconds")
mark_as_advanced(QUIVER_TEST_THREADS QUIVER_TEST_TIMEOUT)

set(QUIVER_MPI_FLAGS "")
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpiexec_version ERROR_QUIET)
if(mpiexec_version MATCHES "Open MPI|OpenRTE")
    set(QUIVER_MPI_FLAGS --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
endif()

# Without times from an earlier run, ctest starts these tests first: a long test that starts last leaves cores idle.
set(QUIVER_LONG_TESTS eigen_matrix nvrtc mixed_plans dense_kernels eigen tidy_changed cli
    cli_misuse cli_faults cli_solve cli_bench)

# The common parts of all tests, compiled once: main, and a precompiled header of the standard
# library and GoogleTest. With CMAKE_DISABLE_PRECOMPILE_HEADERS a test has only the headers that it
# includes. Most tests instantiate many templates, which -O1 compiles faster than -O2, and run loops. The tests that
# are UNOPTIMISED leave nearly all work to the library, and -O0 compiles them in two thirds of the time of -O1.
foreach(main quiver_test_main quiver_test_main_unoptimised)
    add_library(${main} OBJECT ${PROJECT_SOURCE_DIR}/tests/support/main.cpp)
    target_link_libraries(${main} PUBLIC quiver_flags GTest::gtest MPI::MPI_CXX OpenMP::OpenMP_CXX
        Quiver::solvers)
    target_precompile_headers(${main} PRIVATE <algorithm> <array> <cmath> <complex> <cstdint>
        <cstdlib> <filesystem> <fstream> <functional> <limits> <map> <memory> <numeric> <optional>
        <random> <span> <sstream> <stdexcept> <string> <string_view> <tuple> <type_traits> <utility>
        <vector> <gtest/gtest.h>)
endforeach()
quiver_optimise(quiver_test_main -O1)
quiver_optimise(quiver_test_main_unoptimised -O0)

# Dense algebra whose results tests compare with those of the library.
add_library(quiver_test_oracle STATIC ${PROJECT_SOURCE_DIR}/tests/support/dense_oracle.cpp)
target_include_directories(quiver_test_oracle PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(quiver_test_oracle PRIVATE quiver_flags PUBLIC Eigen3::Eigen)
quiver_optimise(quiver_test_oracle -O1)

function(quiver_register_test name ranks labels)
    math(EXPR threads "${QUIVER_TEST_CORES} / ${ranks}")
    if(QUIVER_TEST_THREADS)
        set(threads ${QUIVER_TEST_THREADS})
    elseif(threads LESS 1)
        set(threads 1)
    elseif(threads GREATER 8)
        set(threads 8)
    endif()
    set(processors ${QUIVER_TEST_HALF_CORES})
    if(ranks EQUAL 1)
        # Two tests of one process run at once, because most of their work is done by one thread.
        set(processors ${QUIVER_TEST_CORES})
        add_test(NAME ${name} COMMAND ${ARGN})
    else()
        add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} ${QUIVER_MPI_FLAGS} ${MPIEXEC_NUMPROC_FLAG}
            ${ranks} ${ARGN})
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${QUIVER_TEST_TIMEOUT}
        PROCESSORS ${processors} ENVIRONMENT "OMP_NUM_THREADS=${threads};OMP_WAIT_POLICY=passive;GTEST_BRIEF=1")
    if(name IN_LIST QUIVER_LONG_TESTS)
        set_tests_properties(${name} PROPERTIES COST 100)
    endif()
    if(labels MATCHES "gpu")
        # Four tests of one GPU run at once, because most of the time they wait for the device and
        # for kernel compilations.
        math(EXPR quarter "(${QUIVER_TEST_HALF_CORES} + 3) / 4")
        set_tests_properties(${name} PROPERTIES PROCESSORS ${quarter})
        set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "QUIVER_TEST_PLACE=device")
        set_property(TEST ${name} PROPERTY SKIP_REGULAR_EXPRESSION "SKIPPED . all tests")
    endif()
endfunction()

# The programs of the tests with label gpu; tests/gpu.sh builds nothing else.
add_custom_target(quiver_gpu_tests)
if(QUIVER_BUILD_APPS)
    add_dependencies(quiver_gpu_tests quiver)
endif()

function(quiver_test name)
    cmake_parse_arguments(arg "UNOPTIMISED" "GPU_SHARDS" "SOURCES;RANKS;NIGHTLY;GPU_RANKS;VECTORS;LIBRARIES" ${ARGN})
    set(main quiver_test_main)
    set(level -O1)
    if(arg_UNOPTIMISED)
        set(main quiver_test_main_unoptimised)
        set(level -O0)
    endif()
    add_executable(test_${name} ${arg_SOURCES})
    target_link_libraries(test_${name} PRIVATE ${main} ${arg_LIBRARIES})
    target_precompile_headers(test_${name} REUSE_FROM ${main})
    quiver_optimise(test_${name} ${level})
    target_compile_definitions(test_${name} PRIVATE QUIVER_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
        QUIVER_BINARY_DIR="${PROJECT_BINARY_DIR}")
    quiver_register_test(${name} 1 unit $<TARGET_FILE:test_${name}>)
    foreach(ranks IN LISTS arg_RANKS)
        if(ranks GREATER 1)
            quiver_register_test(${name}.np${ranks} ${ranks} mpi $<TARGET_FILE:test_${name}>)
        endif()
    endforeach()
    set(nightly "")
    foreach(ranks IN LISTS arg_NIGHTLY)
        list(APPEND nightly ${name}.nightly.np${ranks})
        quiver_register_test(${name}.nightly.np${ranks} ${ranks} nightly $<TARGET_FILE:test_${name}>)
    endforeach()
    foreach(vectors IN LISTS arg_VECTORS)
        quiver_register_test(${name}.${vectors} 1 unit $<TARGET_FILE:test_${name}>)
        set(with_vectors ${name}.${vectors})
        if(arg_NIGHTLY)
            list(APPEND nightly ${name}.nightly.${vectors})
            list(APPEND with_vectors ${name}.nightly.${vectors})
            quiver_register_test(${name}.nightly.${vectors} 1 nightly $<TARGET_FILE:test_${name}>)
        endif()
        set_property(TEST ${with_vectors} APPEND PROPERTY ENVIRONMENT "QUIVER_VECTORS=${vectors}")
    endforeach()
    if(nightly)
        set_property(TEST ${nightly} APPEND PROPERTY ENVIRONMENT "QUIVER_TEST_ALL_CASES=1")
        set_property(TEST ${nightly} PROPERTY TIMEOUT 3600)
    endif()
    if(QUIVER_HAVE_CUDA AND arg_GPU_RANKS)
        add_dependencies(quiver_gpu_tests test_${name})
        set(alone "")
        foreach(ranks IN LISTS arg_GPU_RANKS)
            if(ranks GREATER 1)
                quiver_register_test(${name}.gpu.np${ranks} ${ranks} gpu $<TARGET_FILE:test_${name}>)
                # The tests of one process run first, because they compile the kernels that both need.
                set_tests_properties(${name}.gpu.np${ranks} PROPERTIES DEPENDS "${alone}")
            elseif(arg_GPU_SHARDS)
                math(EXPR last "${arg_GPU_SHARDS} - 1")
                foreach(shard RANGE ${last})
                    quiver_register_test(${name}.gpu.s${shard} 1 gpu $<TARGET_FILE:test_${name}>)
                    set_property(TEST ${name}.gpu.s${shard} APPEND PROPERTY ENVIRONMENT
                        "GTEST_TOTAL_SHARDS=${arg_GPU_SHARDS}" "GTEST_SHARD_INDEX=${shard}")
                    list(APPEND alone ${name}.gpu.s${shard})
                endforeach()
            else()
                quiver_register_test(${name}.gpu 1 gpu $<TARGET_FILE:test_${name}>)
                set(alone ${name}.gpu)
            endif()
        endforeach()
    endif()
endfunction()
