# SPDX-License-Identifier: BSD-3-Clause
"""The kernels of OpenBLAS that a Python process uses."""

import os
import pathlib
import subprocess
import sys

import pytest
from quiver import _openblas
from quiver._openblas import OLD_KERNELS

PROGRAM = """
import ctypes, os
before = dict(os.environ)
import quiver
assert dict(os.environ) == before
library = ctypes.CDLL("libopenblas.so.0")
library.openblas_get_corename.restype = ctypes.c_char_p
print(library.openblas_get_corename().decode())
"""


def kernels(**variables):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("OPENBLAS_CORETYPE", "QUIVER_LAPACK")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment | variables,
                          capture_output=True, text=True)
    if "libopenblas.so.0: cannot open" in done.stderr:
        pytest.skip("no OpenBLAS")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_kernels_fit_the_processor():
    if " avx2" not in pathlib.Path("/proc/cpuinfo").read_text():
        pytest.skip("a processor without AVX2")
    assert kernels() not in OLD_KERNELS


def test_old_kernels_are_replaced(monkeypatch):
    seen = []

    class Library:
        _handle = 7

        def openblas_get_corename(self):
            return b"Prescott"

    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    monkeypatch.delenv("QUIVER_LAPACK", raising=False)
    monkeypatch.setattr(_openblas, "_open",
                        lambda: (seen.append(os.environ.get("OPENBLAS_CORETYPE")), Library())[1])
    monkeypatch.setattr(_openblas, "_fitting_kernels", lambda: "Haswell")
    monkeypatch.setattr(_openblas._ctypes, "dlclose", seen.append)
    _openblas.load()
    assert seen == [None, 7, "Haswell"]
    assert "OPENBLAS_CORETYPE" not in os.environ


def test_a_choice_of_the_user_stays():
    assert kernels(OPENBLAS_CORETYPE="Prescott") == "Prescott"
