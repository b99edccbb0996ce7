# SPDX-License-Identifier: BSD-3-Clause
# The files of `cmake --install`, the CMake packages of the install tree and of the build tree, and
# quiver.pc. Headers have their own root include/quiver, so that only projects that link a target of
# Quiver find "kernels/tsmm.hpp".
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(libraries quiver_blockvec quiver_kernels quiver_solvers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Quiver)
set(QUIVER_INCLUDE_ROOT ${CMAKE_INSTALL_INCLUDEDIR}/quiver)

install(TARGETS ${libraries} EXPORT QuiverTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${QUIVER_INCLUDE_ROOT})
install(EXPORT QuiverTargets NAMESPACE Quiver:: DESTINATION ${package_folder})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET quiver)
    install(TARGETS quiver RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(PROGRAMS apps/bench/plot.py apps/embed_plot.py apps/ed_plot.py apps/kmeans_plot.py apps/modes_plot.py apps/svd_plot.py DESTINATION ${CMAKE_INSTALL_DATADIR}/quiver)
    # The folder of the CUDA libraries is rarely in the loader's default path.
    set_target_properties(quiver PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endif()

include(cmake/QuiverHeaders.cmake)
foreach(header IN LISTS QUIVER_PUBLIC_HEADERS)
    cmake_path(GET header PARENT_PATH folder)
    install(FILES ${header} DESTINATION ${QUIVER_INCLUDE_ROOT}/${folder})
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/include/blockvec/config.hpp
    DESTINATION ${QUIVER_INCLUDE_ROOT}/blockvec)

# Each tree gets its own package. Eigen consists of headers only, so users of the install tree do not need
# it. The targets of the build tree refer to all their compile-time dependencies, so the package of the build
# tree must find Eigen.
set(version_file ${PROJECT_BINARY_DIR}/QuiverConfigVersion.cmake)
write_basic_package_version_file(${version_file} COMPATIBILITY SameMinorVersion)
set(config ${PROJECT_BINARY_DIR}/package/QuiverConfig.cmake)
set(QUIVER_BUILD_TREE_DEPENDENCIES "")
configure_package_config_file(cmake/QuiverConfig.cmake.in ${config}
    INSTALL_DESTINATION ${package_folder})
install(FILES ${config} ${version_file} cmake/QuiverHdf5.cmake cmake/QuiverMumps.cmake
    cmake/QuiverScotch.cmake
    DESTINATION ${package_folder})
set(QUIVER_BUILD_TREE_DEPENDENCIES "find_dependency(Eigen3)\n")
configure_package_config_file(cmake/QuiverConfig.cmake.in ${PROJECT_BINARY_DIR}/QuiverConfig.cmake
    INSTALL_DESTINATION ${PROJECT_BINARY_DIR} INSTALL_PREFIX ${PROJECT_BINARY_DIR})
configure_file(cmake/QuiverHdf5.cmake ${PROJECT_BINARY_DIR}/QuiverHdf5.cmake COPYONLY)
configure_file(cmake/QuiverMumps.cmake ${PROJECT_BINARY_DIR}/QuiverMumps.cmake COPYONLY)
configure_file(cmake/QuiverScotch.cmake ${PROJECT_BINARY_DIR}/QuiverScotch.cmake COPYONLY)
export(TARGETS ${libraries} quiver_flags NAMESPACE Quiver:: FILE ${PROJECT_BINARY_DIR}/QuiverTargets.cmake)

# pkg-config: the libraries are static, so quiver.pc lists their dependencies.
set(needed ${MPI_CXX_LIBRARIES} ${ZLIB_LIBRARIES})
if(QUIVER_HAVE_CUDA)
    list(APPEND needed ${CUDA_cudart_static_LIBRARY} -ldl -lrt -lpthread)
endif()
if(QUIVER_HAVE_HDF5)
    list(APPEND needed ${QUIVER_HDF5_LIBRARY})
endif()
if(QUIVER_HAVE_MUMPS)
    list(APPEND needed ${QUIVER_MUMPS_LIBRARY} ${QUIVER_MUMPS_COMMON_LIBRARY})
endif()
if(QUIVER_HAVE_SCOTCH)
    list(APPEND needed ${QUIVER_SCOTCH_LIBRARY} ${QUIVER_SCOTCH_ERROR_LIBRARY})
endif()
list(JOIN needed " " QUIVER_PC_LIBS)
string(PREPEND QUIVER_PC_LIBS "${OpenMP_CXX_FLAGS} ")
list(TRANSFORM MPI_CXX_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE QUIVER_PC_CFLAGS)
list(JOIN QUIVER_PC_CFLAGS " " QUIVER_PC_CFLAGS)
set(pc_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH QUIVER_PC_PREFIX /root/${pc_folder} /root)
string(REGEX REPLACE "/$" "" QUIVER_PC_PREFIX "${QUIVER_PC_PREFIX}")
configure_file(cmake/quiver.pc.in ${PROJECT_BINARY_DIR}/quiver.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/quiver.pc DESTINATION ${pc_folder})
