# SPDX-License-Identifier: BSD-3-Clause
# Finds the C library of HDF5 (first Debian's serial one) unless QUIVER_ENABLE_HDF5 is OFF. Defines the
# target Quiver::hdf5, QUIVER_HAVE_HDF5 and QUIVER_HDF5_SUMMARY. CMake's own module requires a C
# compiler or the C++ library of HDF5, neither of which is needed here. This file is installed;
# QuiverConfig.cmake includes it.
set(QUIVER_HAVE_HDF5 0)
set(QUIVER_HDF5_SUMMARY "off")
if(QUIVER_ENABLE_HDF5)
    find_path(QUIVER_HDF5_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial)
    find_library(QUIVER_HDF5_LIBRARY hdf5 PATH_SUFFIXES hdf5/serial)
    mark_as_advanced(QUIVER_HDF5_INCLUDE_DIR QUIVER_HDF5_LIBRARY)
    if(QUIVER_HDF5_INCLUDE_DIR AND QUIVER_HDF5_LIBRARY)
        set(QUIVER_HAVE_HDF5 1)
        file(STRINGS ${QUIVER_HDF5_INCLUDE_DIR}/H5public.h QUIVER_HDF5_SUMMARY
            REGEX "#define H5_VERS_INFO")
        string(REGEX REPLACE ".*version: ([0-9.]+).*" "\\1" QUIVER_HDF5_SUMMARY
            "${QUIVER_HDF5_SUMMARY}")
        if(NOT TARGET Quiver::hdf5)
            add_library(Quiver::hdf5 UNKNOWN IMPORTED)
            set_target_properties(Quiver::hdf5 PROPERTIES IMPORTED_LOCATION ${QUIVER_HDF5_LIBRARY}
                INTERFACE_INCLUDE_DIRECTORIES ${QUIVER_HDF5_INCLUDE_DIR})
        endif()
    else()
        set(QUIVER_HDF5_SUMMARY "off (not found, so eigenvectors cannot be written; install libhdf5-dev)")
    endif()
    if(NOT QUIVER_ENABLE_HDF5 STREQUAL "AUTO" AND NOT QUIVER_HAVE_HDF5)
        message(FATAL_ERROR "QUIVER_ENABLE_HDF5=${QUIVER_ENABLE_HDF5}, but HDF5 is ${QUIVER_HDF5_SUMMARY}")
    endif()
endif()
