# SPDX-License-Identifier: BSD-3-Clause
"""The Python package solves the problems that every interface solves (tests/doors/problems.txt)."""

import pathlib

import numpy as np
import pytest
import quiver
import scipy.sparse as sp

TABLE = pathlib.Path(__file__).parents[1] / "doors" / "problems.txt"
PROBLEMS = [line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#")]
WHICH = {"smallest": "SA", "largest": "LA", "largest-magnitude": "LM", "smallest-magnitude": "SM",
         "both-ends": "BE"}


def problems(*kinds):
    chosen = [p for p in PROBLEMS if p[0] in kinds]
    assert chosen
    return pytest.mark.parametrize("words", chosen, ids=lambda words: "-".join(words[:4]))


def char_of(letter):
    return {"s": "f", "d": "d", "c": "F", "z": "D"}[letter]


def tolerance(char):
    return max(1e-10, 32 * float(np.finfo(char).eps))


def matrix(letter, n, periodic, d, re, im):
    """The matrix, and the bounds |d| - 2 |b| and |d| + 2 |b| of the magnitudes of its eigenvalues."""
    n, d, b = int(n), float(d), complex(float(re), float(im))
    offsets, diagonals = [0, 1, -1], [d, b, b.conjugate()]
    if periodic == "1":
        offsets += [1 - n, n - 1]
        diagonals += [b, b.conjugate()]
    a = sp.diags_array(np.array(diagonals), offsets=offsets, shape=(n, n))
    char = char_of(letter)
    a = sp.csr_matrix(a if char in "FD" else a.real).astype(char)
    return a, abs(d) - 2 * abs(b), abs(d) + 2 * abs(b)


@problems("eigen")
def test_eigen(words):
    which, target, method, k = words[8:12]
    a, _, norm = matrix(*words[2:8])
    char = a.dtype.char
    near = {"sigma": float(target)} if which == "target" else {"which": WHICH[which]}
    w, v = quiver.eigsh(a, int(k), tol=1e-10, method=method, **near)
    bound = (tolerance(char) + 4 * np.finfo(char).eps) * norm
    np.testing.assert_allclose(w, np.array(words[12:], float), rtol=0, atol=bound)
    assert np.linalg.norm(a @ v - v * w, axis=0).max() <= bound


@problems("solve")
def test_solve(words):
    method, preconditioner, columns = words[8:11]
    a, least, _ = matrix(*words[2:8])
    i, j = np.ogrid[1:a.shape[0] + 1, 1:int(columns) + 1]
    exact = (1 + i * j % 7).astype(a.dtype)
    b = a @ exact
    tol = tolerance(a.dtype.char)
    x, info = getattr(quiver, method)(a, b, rtol=tol,
                                      M=None if preconditioner == "none" else preconditioner)
    assert info == 0
    bound = (tol + 8 * np.finfo(a.dtype).eps) / least
    assert np.all(np.linalg.norm(x - exact, axis=0) <= bound * np.linalg.norm(b, axis=0))


@problems("tsmttsm", "tsmm")
def test_products(words):
    rows, m, n = map(int, words[3:6])
    is_tsmttsm = words[0] == "tsmttsm"
    i, j = np.ogrid[:rows, :max(m, n)]
    a = (3 * i + 5 * j) % 7 - 3 + 1j * ((2 * i + 3 * j) % 5 - 2)
    b = (i + 2 * j) % 5 - 2 + 1j * ((4 * i + j) % 7 - 3)
    char = char_of(words[2])
    as_type = lambda x: np.ascontiguousarray(x if char in "FD" else x.real).astype(char)  # noqa: E731
    a, b = as_type(a[:, :m]), as_type(b[:rows if is_tsmttsm else m, :n])
    c = quiver.tsmttsm(a, b) if is_tsmttsm else quiver.tsmm(a, b)[-1:]
    parts = np.array(words[6:], float).reshape(-1, n, 2)
    np.testing.assert_array_equal(c, parts[..., 0] + 1j * parts[..., 1])
