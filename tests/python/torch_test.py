# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of torch in host memory: values, layouts, memory and warnings. Skipped without torch."""

import warnings

import numpy as np
import pytest
import quiver
import scipy.linalg
from support import check_pairs, random_definite, random_hermitian, spectrum, wanted

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.skipif(torch is None, reason="torch is not installed")


@pytest.fixture(autouse=True)
def no_warnings():
    """torch warns of read-only arrays once in a process, unless it is told to warn always."""
    torch.set_warn_always(True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    torch.set_warn_always(False)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("char", "fdFD")
def test_functions_and_read_only_guesses(rng, char):
    a = random_hermitian(rng, 120, char)
    dense = torch.from_numpy(a.toarray())
    operator = quiver.LinearOperator(a.shape, lambda X: dense @ X, a.dtype)
    v0 = torch.ones((120, 2), dtype=dense.dtype)
    w, v = quiver.eigsh(operator, 3, which="SA", v0=v0, method="lanczos")
    check_pairs(a, w.numpy(), v.numpy(), wanted(spectrum(a), 3, "SA"))
    guess = read_only(np.ones((120, 2), a.dtype))
    w, v = quiver.eigsh(dense, 3, which="SA", v0=guess, method="lanczos")
    check_pairs(a, w.numpy(), v.numpy(), wanted(spectrum(a), 3, "SA"))
    assert not guess.flags.writeable and np.all(guess == 1)


def test_read_only_arrays_are_not_copied(rng):
    space = quiver._arrays.space_of(torch.ones(3))
    x = read_only(rng.standard_normal((50, 4)))
    tensor = space.from_numpy(x)
    assert tensor.data_ptr() == x.ctypes.data
    address = x.ctypes.data
    expected = x.copy()
    del x  # the tensor keeps the memory
    assert tensor.data_ptr() == address and np.array_equal(tensor.numpy(), expected)
    b = read_only(np.ones(50))
    a = random_definite(rng, 50, "d")
    solution, info = quiver.cg(torch.from_numpy(a.toarray()), b, rtol=1e-10)
    assert info == 0
    np.testing.assert_allclose(solution.numpy(), np.linalg.solve(a.toarray(), b), atol=1e-8)


def test_a_dense_tensor_gets_a_dense_solve():
    n = 1030
    a = np.diag(np.full(n, 2.0)) - np.diag(np.ones(n - 1), 1) - np.diag(np.ones(n - 1), -1)
    w, v, info = quiver.eigsh(torch.from_numpy(a), 2, which="SA", full_output=True)
    np.testing.assert_allclose(w.numpy(), scipy.linalg.eigvalsh(a)[:2], atol=1e-12)
    assert isinstance(v, torch.Tensor) and info.method == "dense"
