# SPDX-License-Identifier: BSD-3-Clause
"""Loads OpenBLAS with kernels that fit the processor.

An OpenBLAS that is older than the processor may choose kernels without AVX2: dense solves and
factorisations by MUMPS then take two to four times as long. OpenBLAS reads the environment
variable OPENBLAS_CORETYPE only while it is loaded.
"""

from __future__ import annotations

import _ctypes
import ctypes
import os

VARIABLE = "OPENBLAS_CORETYPE"
#: The kernels without AVX2, as in apps/blas_kernels.cpp.
OLD_KERNELS = {"Prescott", "Core2", "Penryn", "Dunnington", "Atom", "Nehalem", "Opteron",
               "Opteron_SSE3", "Barcelona", "Bobcat", "Nano", "Generic", "Sandybridge",
               "Bulldozer", "Piledriver"}


def _open() -> ctypes.CDLL:
    """The library that dense solves load; raises OSError if there is none."""
    library = ctypes.CDLL("libopenblas.so.0")
    library.openblas_get_corename.restype = ctypes.c_char_p
    return library


def _fitting_kernels() -> str | None:
    """The best kernels of OpenBLAS that this processor can run, if it has at least AVX2."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        flags = set(next((line for line in lines if line.startswith("flags")), "").split())
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= flags:
        return "SkylakeX"
    return "Haswell" if {"avx2", "fma"} <= flags else None


def load() -> None:
    """Loads OpenBLAS, and again with better kernels if it has chosen some without AVX2.

    VARIABLE is set only during the second load. The library stays loaded. Without effect if VARIABLE
    is set, if QUIVER_LAPACK is set, or if another module has loaded OpenBLAS before.
    """
    if VARIABLE in os.environ or os.environ.get("QUIVER_LAPACK"):
        return
    try:
        library = _open()
        if library.openblas_get_corename().decode() not in OLD_KERNELS:
            return
        kernels = _fitting_kernels()
        if kernels is None:
            return
        _ctypes.dlclose(library._handle)
        os.environ[VARIABLE] = kernels
        try:
            _open()
        finally:
            del os.environ[VARIABLE]
    except (OSError, AttributeError):  # no OpenBLAS, no openblas_get_corename, no /proc/cpuinfo
        pass
