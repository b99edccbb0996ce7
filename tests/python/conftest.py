# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers that follow from the name of the test, on all ranks alike; QUIVER_TEST_SEED sets another seed."""

import os
import zlib

import numpy as np
import pytest


@pytest.fixture
def rng(request):
    seed = int(os.environ.get("QUIVER_TEST_SEED", zlib.crc32(request.node.name.encode())))
    print(f"QUIVER_TEST_SEED={seed}")  # pytest shows it for failures
    return np.random.default_rng(seed)
