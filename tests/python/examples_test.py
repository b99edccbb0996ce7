# SPDX-License-Identifier: BSD-3-Clause
"""Every Python program of examples/ ends with status 0 and prints the lines after `#>`."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("program", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example(program):
    promised = [line[3:] for line in program.read_text().splitlines() if line.startswith("#> ")]
    assert promised
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in promised:
        assert line in done.stdout.splitlines()
    assert f"[{program.name}]({program.name})" in (EXAMPLES / "README.md").read_text()
