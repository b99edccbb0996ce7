# SPDX-License-Identifier: BSD-3-Clause
"""Products of blocks, QR, sparse products and batches against NumPy; arrays in a supported layout are not copied."""

import numpy as np
import pytest
import quiver
import scipy.sparse as sp
from quiver._arrays import Space, space_of
from support import random_hermitian


def block(rng, shape, char):
    x = rng.standard_normal(shape)
    if char in "FD":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(char)


def close(actual, expected, char, scale):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=20 * np.finfo(char).eps * scale)


@pytest.mark.parametrize("char", "fdFD")
def test_tall_and_skinny_products(rng, char):
    for _ in range(4):
        n = int(rng.integers(1, 3000))
        k, m = (int(value) for value in rng.integers(1, 20, 2))
        a, b, c = (block(rng, shape, char) for shape in ((n, k), (n, m), (k, m)))
        wide_a, wide_b = a.astype("D"), b.astype("D")
        size = np.sqrt(n) * n**0.5 + 1
        close(quiver.tsmttsm(a, b), wide_a.conj().T @ wide_b, char, size)
        close(quiver.gram(a), wide_a.conj().T @ wide_a, char, 4 * size)
        close(quiver.tsmm(a, c), wide_a @ c, char, 30 * k)
        out = c.copy()
        assert quiver.tsmttsm(a, b, 2.0, -1.0, out) is out
        close(out, 2 * wide_a.conj().T @ wide_b - c, char, 4 * size)
        y = b.copy()
        quiver.tsmm(a, c, 0.5, 2.0, out=y)
        close(y, 0.5 * wide_a @ c + 2 * wide_b, char, 30 * k)
        w, g = quiver.tsmm_gram(a, c)
        close(w, wide_a @ c, char, 30 * k)
        close(g, w.conj().T.astype("D") @ w, char, 40 * k * size)
        if char in "FD":
            close(quiver.tsmttsm(a, b, alpha=1j), 1j * wide_a.conj().T @ wide_b, char, 4 * size)


def test_layouts(rng):
    base = rng.standard_normal((60, 12))
    c = rng.standard_normal((3, 2))
    for a in (base[:, 2:5], base[::2, 2:5], base[:, ::4], np.asfortranarray(base[:, :3]),
              base[::-1, :3], base[:0, :3], base[:1, :3], base[:, :3].astype("f"),
              base[:, :3].astype(">f8"), np.broadcast_to(base[:1, :3], (9, 3))):
        np.testing.assert_allclose(quiver.tsmm(a, c), a @ c, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(quiver.gram(a), a.T @ a, rtol=1e-5, atol=1e-4)
    out = base[:, 6:8]
    assert quiver.tsmm(base[:, :3], c, out=out) is out
    np.testing.assert_allclose(out, base[:, :3] @ c, atol=1e-13)


def test_no_copies(rng):
    """The pointers that the extension module gets are those of the caller's arrays."""
    space = Space()
    for char in "fdFD":
        base = block(rng, (50, 8), char)
        for x in (base, base[:, 1:5], base[::3, :2], base[:, 0], base[7:9]):
            got = space.raw(space.block(x, char, "x"))
            assert got is x
            assert np.shares_memory(got, base)
        read_only = base.copy()
        read_only.flags.writeable = False
        assert space.block(read_only, char, "x") is read_only
    # In place: the result is in the caller's memory.
    x = rng.standard_normal((1000, 4))
    before, address = x.copy(), x.ctypes.data
    c = rng.standard_normal((4, 4))
    assert quiver.tsmm(x, c, out=x) is x and x.ctypes.data == address
    np.testing.assert_allclose(x, before @ c, atol=1e-13)


def test_operators_see_the_solvers_memory(rng):
    """The arguments X and out of a function are views of the solver's memory."""
    a = random_hermitian(rng, 40, "d")
    shapes = set()

    def product(X, out):
        assert not X.flags.owndata and not out.flags.owndata
        shapes.add(X.shape)
        np.matmul(a.toarray(), X, out=out)

    w = quiver.eigsh(quiver.LinearOperator(a.shape, product), 2, which="LA",
                     return_eigenvectors=False)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a.toarray())[-2:], atol=1e-12)
    assert shapes


@pytest.mark.parametrize("char", "fdFD")
def test_qr(rng, char):
    eps = np.finfo(char).eps
    for condition in (1, 1 / eps**0.5, 0.01 / eps):
        n, k = int(rng.integers(20, 2000)), int(rng.integers(1, 12))
        a = block(rng, (n, k), char) * np.logspace(0, -np.log10(condition), k).astype(char)
        a = (a @ block(rng, (k, k), char)).astype(char)
        q, r = quiver.qr(a)
        np.testing.assert_array_equal(r, np.triu(r))
        assert abs(q.conj().T @ q - np.eye(k)).max() < 100 * eps
        assert np.linalg.norm(a - q @ r) <= 100 * k * eps * np.linalg.norm(a)
    assert quiver.qr(a[:, :0]).Q.shape == (n, 0)


@pytest.mark.parametrize("char", "fdFD")
def test_spmm(rng, char):
    n = int(rng.integers(5, 400))
    a = sp.random(n, n, 0.1, format="csr", random_state=rng).astype(char)
    if char in "FD":
        a = sp.csr_matrix(a * (1 + 2j)).astype(char)
    matrix = quiver.SparseMatrix(a)
    for shape in ((n,), (n, 1), (n, 7)):
        x = block(rng, shape, char)
        expected = a.astype("D") @ x
        close(quiver.spmm(a, x), expected, char, n)
        close(matrix @ x, expected, char, n)
        out = np.empty_like(x)
        assert quiver.spmm(matrix, x, out=out) is out
        close(out, expected, char, n)


@pytest.mark.parametrize("char", "fdFD")
def test_spmm_of_rectangular_matrices_and_adjoints(rng, char):
    for m, n in ((17, 130), (130, 17), (40, 40)):
        a = sp.random(m, n, 0.2, format="csr", random_state=rng).astype(char)
        if char in "FD":
            a = sp.csr_matrix(a * (1 + 2j)).astype(char)
        matrix = quiver.SparseMatrix(a)
        assert matrix.H.shape == (n, m) and matrix.H is matrix.H and matrix.H.dtype == matrix.dtype
        for columns in ((), (1,), (6,)):
            x, y = block(rng, (n, *columns), char), block(rng, (m, *columns), char)
            wide = a.astype("D")
            close(matrix @ x, wide @ x, char, n)
            close(quiver.spmm(a, x), wide @ x, char, n)
            close(matrix.H @ y, wide.conj().T @ y, char, m)
            close(matrix.H.H @ x, wide @ x, char, n)


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("is_sorted", [True, False])
def test_replaced_values(rng, char, is_sorted):
    m, n = (int(size) for size in rng.integers(5, 400, 2))
    a = sp.random(m, n, 0.1, format="csr", random_state=rng).astype(char)
    if not is_sorted:
        for begin, end in zip(a.indptr, a.indptr[1:]):
            a.indices[begin:end] = a.indices[begin:end][::-1].copy()
        a.has_sorted_indices = False
    matrix = quiver.SparseMatrix(a)
    x, y = block(rng, (n, 3), char), block(rng, (m, 3), char)
    before, adjoint = a.astype("D"), matrix.H
    a.data = block(rng, a.nnz, char)
    matrix.replace_values(a.data)
    close(matrix @ x, a.astype("D") @ x, char, n)
    close(adjoint @ y, before.conj().T @ y, char, m)
    close(matrix.H @ y, a.astype("D").conj().T @ y, char, m)
    adjoint.replace_values(a.conj().T.tocsr().sorted_indices().data)
    close(adjoint @ y, a.astype("D").conj().T @ y, char, m)
    with pytest.raises(ValueError, match="new values"):
        matrix.replace_values(a.data[1:])
    with pytest.raises(ValueError, match="finite"):
        matrix.replace_values(np.full(a.nnz, np.inf))
    with pytest.raises(ValueError, match="dimension"):
        matrix.replace_values(a.data[None, :])
    close(matrix @ x, a.astype("D") @ x, char, n)


@pytest.mark.parametrize("char", "fdFD")
def test_batches(rng, char):
    eps = np.finfo(char).eps
    count, n = int(rng.integers(1, 60)), int(rng.integers(1, 20))
    a = block(rng, (count, n, n), char)
    original = a.copy()
    factors, pivots, status = quiver.lu(a)
    assert not status.any()
    np.testing.assert_array_equal(a, original)
    rows = np.tile(np.arange(n), (count, 1))
    for j in range(n):
        for b in range(count):
            p = pivots[b, j]
            rows[b, [j, p]] = rows[b, [p, j]]
    lower = np.tril(factors, -1) + np.eye(n)
    permuted = np.take_along_axis(a, rows[:, :, None], axis=1)
    assert abs(lower @ np.triu(factors) - permuted).max() < 50 * n * eps * abs(a).max()
    definite = a @ a.conj().swapaxes(1, 2) + n * np.eye(n)
    definite = definite.astype(char)
    chol = quiver.cholesky(definite)
    assert abs(chol @ chol.conj().swapaxes(1, 2) - definite).max() < 50 * eps * abs(definite).max()
    assert not np.triu(chol, 1).any()
    for b_shape in ((count, n), (count, n, 3)):
        b = block(rng, b_shape, char)
        for matrix, kind in ((a, "general"), (definite, "pos")):
            x = quiver.solve(matrix, b, assume_a=kind)
            assert x.shape == b_shape
            columns = (x if b.ndim == 3 else x[..., None], b if b.ndim == 3 else b[..., None])
            residual = abs(matrix @ columns[0] - columns[1]).max()
            assert residual <= 100 * n * eps * max(1, abs(matrix).max() * abs(x).max() * n)


def test_bad_batches(rng):
    singular = np.zeros((3, 2, 2)) + np.eye(2)
    singular[1] = 1
    with pytest.raises(np.linalg.LinAlgError, match="matrix 1"):
        quiver.solve(singular, np.ones((3, 2)))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        quiver.cholesky(-singular)
    assert quiver.lu(singular).status.tolist() == [0, 2, 0]
    for a in (np.ones((2, 3, 4)), np.ones((3, 3)), np.ones((1, 65, 65))):
        with pytest.raises(ValueError):
            quiver.lu(a)
    assert quiver.lu(np.ones((0, 3, 3))).factors.shape == (0, 3, 3)
    with pytest.raises(ValueError, match="shape"):
        quiver.solve(np.ones((2, 3, 3)), np.ones((2, 4)))


def test_refused_arguments(rng):
    x, c = np.ones((9, 3)), np.ones((3, 2))
    frozen = np.ones((9, 2))
    frozen.flags.writeable = False
    cases = [
        (lambda: quiver.tsmm(x, np.ones((4, 2))), "columns"),
        (lambda: quiver.tsmttsm(x, np.ones((8, 3))), "rows"),
        (lambda: quiver.tsmm(x, c, beta=1.0), "beta"),
        (lambda: quiver.tsmm(x, c, alpha=1j), "complex"),
        (lambda: quiver.tsmm(x, c, out=np.ones((9, 3))), "shape"),
        (lambda: quiver.tsmm(x, c, out=frozen), "read-only"),
        (lambda: quiver.tsmm(x, c, out=np.ones((2, 9)).T), "contiguous"),
        (lambda: quiver.tsmm(x, c, stream=1), "stream"),
        (lambda: quiver.tsmm(np.ones(9), c), "one dimension"),
        (lambda: quiver.qr(np.ones((2, 3))), "rows"),
        (lambda: quiver.gram(np.ma.masked_array(x, mask=x > 0)), "masked"),
        (lambda: quiver.solve(np.ones((1, 2, 2)), np.ones((1, 2)), assume_a="odd"), "assume_a"),
        (lambda: quiver.LinearOperator((3, 2), None), "square"),
        (lambda: quiver.SparseMatrix(sp.csr_matrix((2, 0))), "no columns"),
        (lambda: quiver.eigsh(quiver.SparseMatrix(sp.csr_matrix((2, 3))), 1), "square"),
        (lambda: quiver.SparseMatrix(sp.csr_matrix((2, 3))) @ np.ones(2), "X has 2 rows, 3 are"),
        (lambda: quiver.SparseMatrix(sp.csr_matrix((2, 3))).H @ np.ones(3), "X has 3 rows, 2 are"),
        (lambda: quiver.spmm(sp.identity(3), np.ones(4)), "4 rows"),
    ]
    for call, text in cases:
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(TypeError):
        quiver.SparseMatrix(np.eye(3))
    for call in (lambda: quiver.gram(sp.identity(3)), lambda: quiver.qr(sp.identity(3, format="csr")),
                 lambda: quiver.tsmm(np.eye(3), sp.identity(3))):
        with pytest.raises(TypeError, match=r"sparse matrix is not a block: .*toarray\(\).*spmm"):
            call()
    with pytest.raises(TypeError, match=r"X is a sparse matrix.*toarray"):
        quiver.spmm(sp.identity(3), sp.identity(3))
    with pytest.raises(TypeError):
        quiver.gram(np.array([["a", "b"]]))


class Producer:
    """An array of a library that only has the DLPack protocol."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    @property
    def dtype(self):
        return self.array.dtype

    @property
    def shape(self):
        return self.array.shape


def test_dlpack_producers(rng):
    x = rng.standard_normal((30, 4))
    assert space_of(Producer(x)).library == "numpy"
    np.testing.assert_allclose(quiver.gram(Producer(x)), x.T @ x, atol=1e-12)
    got = Space().array(Producer(x), "d", "x")
    assert got.ctypes.data == x.ctypes.data


@pytest.mark.parametrize("char,scale", [("d", 1e-170), ("D", 1e-170), ("f", 1e-25), ("F", 1e-25)])
def test_qr_of_columns_whose_squares_underflow(rng, char, scale):
    a = (rng.standard_normal((300, 4)) * scale).astype(char)
    q, r = quiver.qr(a)
    eps = np.finfo(char).eps
    assert np.linalg.norm(q.conj().T @ q - np.eye(4)) <= 100 * eps
    assert np.abs(q @ r - a).max() <= 100 * eps * np.abs(a).max()
