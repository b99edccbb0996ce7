# SPDX-License-Identifier: BSD-3-Clause
# Finds CUDA >= 12.8 (runtime, NVRTC) unless QUIVER_ENABLE_CUDA is OFF. Sets QUIVER_HAVE_CUDA,
# QUIVER_CUDA_VERSION and QUIVER_CUDA_SUMMARY. No CUDA compiler is needed, because NVRTC compiles the
# kernels at run time.
set(QUIVER_HAVE_CUDA 0)
set(QUIVER_CUDA_VERSION "")
set(QUIVER_CUDA_SUMMARY "off")
if(QUIVER_ENABLE_CUDA)
    find_package(CUDAToolkit QUIET)
    if(CUDAToolkit_FOUND AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8 AND TARGET CUDA::nvrtc)
        set(QUIVER_HAVE_CUDA 1)
        set(QUIVER_CUDA_VERSION "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
        set(QUIVER_CUDA_SUMMARY "${CUDAToolkit_VERSION}")
    elseif(CUDAToolkit_FOUND)
        set(QUIVER_CUDA_SUMMARY "off (found ${CUDAToolkit_VERSION}, 12.8 or newer is needed)")
    else()
        set(QUIVER_CUDA_SUMMARY "off (no CUDA toolkit found: a host-only build)")
    endif()
    if(NOT QUIVER_ENABLE_CUDA STREQUAL "AUTO" AND NOT QUIVER_HAVE_CUDA)
        message(FATAL_ERROR "QUIVER_ENABLE_CUDA=${QUIVER_ENABLE_CUDA}, but CUDA is ${QUIVER_CUDA_SUMMARY}")
    endif()
endif()
