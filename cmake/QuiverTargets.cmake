# SPDX-License-Identifier: BSD-3-Clause
# quiver_library(NAME SOURCES...) adds a static library with alias Quiver::NAME; each of the four floors (blockvec,
# kernels, solvers, apps) is one such library. All targets of this project are compiled with the flags of quiver_flags.
add_library(quiver_flags INTERFACE)
target_compile_features(quiver_flags INTERFACE cxx_std_20)
target_compile_options(quiver_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion)
# g++ 12 wrongly warns of overlapping copies inside std::string (GCC bug 105651).
target_compile_options(quiver_flags INTERFACE
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
# In a unity build, g++ treats the included sources as headers and warns of types that use an
# unnamed namespace.
target_compile_options(quiver_flags INTERFACE
    $<$<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
target_compile_definitions(quiver_flags INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
if(QUIVER_WERROR)
    target_compile_options(quiver_flags INTERFACE -Werror)
endif()

# quiver_optimise(TARGET -O1): the optimisation level of a target in release builds. Code around the
# kernels needs less optimisation than the kernels.
function(quiver_optimise target level)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
endfunction()

# quiver_precompile(TARGET HEADER...): where the preset compiles several files at once (CMAKE_UNITY_BUILD), the headers
# that most of them include are read once. In other builds every file has only the headers that it includes.
function(quiver_precompile target)
    if(CMAKE_UNITY_BUILD)
        target_precompile_headers(${target} PRIVATE ${ARGN})
    endif()
endfunction()

function(quiver_library name)
    add_library(quiver_${name} STATIC ${ARGN})
    add_library(Quiver::${name} ALIAS quiver_${name})
    set_target_properties(quiver_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME ${name})
    target_compile_features(quiver_${name} PUBLIC cxx_std_20)
    target_include_directories(quiver_${name} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
    target_link_libraries(quiver_${name} PRIVATE $<BUILD_INTERFACE:quiver_flags>)
endfunction()
