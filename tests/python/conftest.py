# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers with a printed seed; QUIVER_TEST_SEED repeats a seed."""

import os
import random

import numpy as np
import pytest


@pytest.fixture
def rng():
    seed = int(os.environ.get("QUIVER_TEST_SEED", random.SystemRandom().randrange(2**31)))
    print(f"QUIVER_TEST_SEED={seed}")  # pytest shows it for failures
    return np.random.default_rng(seed)
