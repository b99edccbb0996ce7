# SPDX-License-Identifier: BSD-3-Clause
# Finds MUMPS (double precision, for MPI) unless QUIVER_ENABLE_MUMPS is OFF. Defines the target
# Quiver::mumps, QUIVER_HAVE_MUMPS and QUIVER_MUMPS_SUMMARY. This file is installed;
# QuiverConfig.cmake includes it.
set(QUIVER_HAVE_MUMPS 0)
set(QUIVER_MUMPS_SUMMARY "off")
if(QUIVER_ENABLE_MUMPS)
    find_path(QUIVER_MUMPS_INCLUDE_DIR dmumps_c.h PATH_SUFFIXES mumps MUMPS)
    find_library(QUIVER_MUMPS_LIBRARY dmumps)
    find_library(QUIVER_MUMPS_COMMON_LIBRARY mumps_common)
    mark_as_advanced(QUIVER_MUMPS_INCLUDE_DIR QUIVER_MUMPS_LIBRARY QUIVER_MUMPS_COMMON_LIBRARY)
    if(NOT QUIVER_HAVE_MPI)
        set(QUIVER_MUMPS_SUMMARY "off (it needs MPI)")
    elseif(QUIVER_MUMPS_INCLUDE_DIR AND QUIVER_MUMPS_LIBRARY AND QUIVER_MUMPS_COMMON_LIBRARY)
        set(QUIVER_HAVE_MUMPS 1)
        file(STRINGS ${QUIVER_MUMPS_INCLUDE_DIR}/dmumps_c.h QUIVER_MUMPS_SUMMARY
            REGEX "#define MUMPS_VERSION \"")
        string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" QUIVER_MUMPS_SUMMARY "${QUIVER_MUMPS_SUMMARY}")
        if(NOT TARGET Quiver::mumps)
            add_library(Quiver::mumps UNKNOWN IMPORTED)
            set_target_properties(Quiver::mumps PROPERTIES IMPORTED_LOCATION ${QUIVER_MUMPS_LIBRARY}
                INTERFACE_INCLUDE_DIRECTORIES ${QUIVER_MUMPS_INCLUDE_DIR}
                INTERFACE_LINK_LIBRARIES ${QUIVER_MUMPS_COMMON_LIBRARY})
        endif()
    else()
        set(QUIVER_MUMPS_SUMMARY "off (not found, so shift-invert is limited to 50,000 rows; install libmumps-dev)")
    endif()
    if(NOT QUIVER_ENABLE_MUMPS STREQUAL "AUTO" AND NOT QUIVER_HAVE_MUMPS)
        message(FATAL_ERROR "QUIVER_ENABLE_MUMPS=${QUIVER_ENABLE_MUMPS}, but MUMPS is ${QUIVER_MUMPS_SUMMARY}")
    endif()
endif()
