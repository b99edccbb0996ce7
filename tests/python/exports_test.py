# SPDX-License-Identifier: BSD-3-Clause
"""The symbols that the extension module exports."""

import shutil
import subprocess

import pytest
import quiver


def test_exports_only_its_entry_point():
    # Symbols of the library or of a static libstdc++ would mix with other copies in the process: a
    # stream that reads numbers with the facets of another libstdc++ crashes.
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    lines = subprocess.run(["nm", "--dynamic", "--defined-only", quiver._core.__file__], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ["PyInit__core"]
