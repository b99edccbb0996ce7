# SPDX-License-Identifier: BSD-3-Clause
"""Loads OpenBLAS with kernels that fit the processor.

An OpenBLAS that is older than the processor takes kernels without AVX2: dense solves and
factorisations by MUMPS then take two to four times as long. It reads the variable
OPENBLAS_CORETYPE only while it is loaded.
"""

import _ctypes
import ctypes
import os

VARIABLE = "OPENBLAS_CORETYPE"
# The kernels without AVX2 that OpenBLAS takes for unknown processors; apps/blas_kernels.cpp has all.
OLD_KERNELS = {"Prescott", "Core2", "Nehalem", "Sandybridge", "Generic"}


def _open() -> ctypes.CDLL:
    """The library that solvers/dense/lapack.cpp loads first; raises OSError if there is none."""
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
    """Loads OpenBLAS if the process has not done so; a value of VARIABLE is respected.

    While OpenBLAS is loaded a second time, VARIABLE is set.
    """
    if VARIABLE in os.environ:
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
    except (OSError, AttributeError):  # no OpenBLAS, or no Linux
        pass
