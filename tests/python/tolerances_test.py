# SPDX-License-Identifier: BSD-3-Clause
"""Tolerances and times are finite numbers from 0 on, in every function; lost digits are told."""

import warnings

import numpy as np
import pytest
import quiver
import scipy.sparse as sp
import scipy.sparse.csgraph  # noqa: F401

MATRIX = sp.diags_array(np.arange(1.0, 31), format="csr")
RING = sp.csr_array(np.roll(np.eye(30), 1, axis=1) + np.roll(np.eye(30), -1, axis=1))
POINTS = np.arange(60.0).reshape(30, 2)

FUNCTIONS = {
    "eigsh": lambda **options: quiver.eigsh(MATRIX, 2, **options),
    "svds": lambda **options: quiver.svds(MATRIX, 2, **options),
    "modes": lambda **options: quiver.modes(MATRIX, MATRIX, 2, **options),
    "spectral_embedding": lambda **options: quiver.spectral_embedding(RING, 2, **options),
    "ed": lambda **options: quiver.ed("model:heisenberg,L=6", k=2, **options),
    "kmeans": lambda **options: quiver.kmeans(POINTS, 2, **options),
}
TIMED = ("eigsh", "svds", "modes", "spectral_embedding")
CASES = [(name, "tol") for name in FUNCTIONS] + [(name, "max_seconds") for name in TIMED]


@pytest.mark.parametrize("name,option", CASES)
def test_only_finite_numbers_from_zero_on(name, option):
    for value, text in ((-1, "-1"), (-1e-300, "-1e-300"), (float("nan"), "nan"),
                        (float("inf"), "inf")):
        with pytest.raises(ValueError) as error:
            FUNCTIONS[name](**{option: value})
        assert str(error.value) == f"{option}={text}: a finite number from 0 on is expected"
    with pytest.raises((TypeError, ValueError)):
        FUNCTIONS[name](**{option: "none"})
    FUNCTIONS[name](**{option: np.float32(1e-3) if option == "tol" else 1000})


@pytest.mark.parametrize("option", ["rtol", "atol"])
def test_tolerances_of_linear_solvers(option):
    for value, text in ((-1.0, "-1.0"), (float("nan"), "nan")):
        with pytest.raises(ValueError, match=f"{option}={text}: a finite number"):
            quiver.cg(MATRIX, np.ones(30), **{option: value})


def test_a_result_without_a_certain_digit_warns():
    """Eigenvalues 1 to 40 beside a norm of 10^8: a tolerance of 10^-4 does not tell them apart."""
    graded = sp.diags_array(np.append(np.arange(1.0, 41), np.linspace(1e3, 1e8, 1500)), format="csr")
    with pytest.warns(quiver.AccuracyWarning, match="3 of 3 eigenvalues are smaller than the bounds"):
        quiver.eigsh(graded, 3, which="SA", tol=1e-4, method="chebyshev")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values, _ = quiver.eigsh(graded, 3, which="SA")
        quiver.eigsh(sp.csgraph.laplacian(RING), 1, which="SA")  # 0 to rounding
    np.testing.assert_allclose(values, [1, 2, 3], rtol=1e-6)
