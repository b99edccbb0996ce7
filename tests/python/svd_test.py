# SPDX-License-Identifier: BSD-3-Clause
"""svd, svds and pca against NumPy and SciPy, and against scikit-learn where it is installed."""

import numpy as np
import pytest
import quiver
import scipy.sparse as sp


def graded(rng, n, m, condition, char):
    """n x m with singular values from 1 to 1 / condition."""
    complex_ = char in "FD"

    def orthonormal(rows, cols):
        x = rng.standard_normal((rows, cols))
        return np.linalg.qr(x + 1j * rng.standard_normal((rows, cols)) if complex_ else x)[0]

    s = np.logspace(0, -np.log10(condition), m) if m > 1 else np.ones(1)
    return np.ascontiguousarray((orthonormal(n, m) * s) @ orthonormal(m, m).conj().T, dtype=char)


def assert_signs(rows):
    """The element of largest modulus of each row is positive."""
    rows = np.asarray(rows)
    largest = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
    np.testing.assert_allclose(largest, np.abs(largest), atol=1e-5)


@pytest.mark.parametrize("char", "fdFD")
def test_svd_of_tall_blocks(rng, char):
    eps = np.finfo(char).eps
    for n, m, condition in ((1, 1, 1), (30, 7, 10), (400, 20, 1e6), (90, 33, 1e14), (12, 12, 1e10)):
        x = graded(rng, n, m, condition, char)
        u, s, vh = quiver.svd(x)
        expected = np.linalg.svd(x.astype("D"), compute_uv=False)
        np.testing.assert_allclose(s, expected, atol=40 * eps)
        assert s.dtype == np.finfo(char).dtype and u.dtype == vh.dtype == np.dtype(char)
        np.testing.assert_allclose(u * s @ vh, x, atol=60 * eps)
        np.testing.assert_allclose(u.conj().T @ u, np.eye(m), atol=60 * eps)
        np.testing.assert_allclose(vh @ vh.conj().T, np.eye(m), atol=60 * eps)
        assert_signs(vh)
        k = (m + 1) // 2
        assert quiver.svd(x, k).U.shape == (n, k)
        np.testing.assert_allclose(quiver.svd(x, k, compute_uv=False), expected[:k], atol=40 * eps)


def test_svd_in_one_pass(rng):
    x = graded(rng, 200, 10, 1e3, "d")
    s = quiver.svd(x, compute_uv=False, one_pass=True)
    np.testing.assert_allclose(s, np.logspace(0, -3, 10), atol=1e-11)


def test_svd_refuses(rng):
    x = rng.standard_normal((9, 4))
    for k in (0, 5):
        with pytest.raises(ValueError, match=f"k={k}: X has 4 singular values"):
            quiver.svd(x, k)
    with pytest.raises(ValueError, match="4 rows and 9 columns"):
        quiver.svd(np.ascontiguousarray(x.T))
    x[3, 2] = np.nan
    with pytest.raises(ValueError, match="column 2 of X"):
        quiver.svd(x)
    with pytest.raises(TypeError, match="svds"):
        quiver.svd(sp.identity(4))
    with pytest.raises(ValueError, match="dimensions"):
        quiver.svd(np.ones(4))


def centred(x):
    """The means, and the rows minus the means in long double. Sums are relative to the first row."""
    wide = x.astype(np.longdouble)
    first = wide[0].copy()
    wide -= first
    mean = wide.mean(axis=0)
    return np.asarray(first + mean, dtype="d"), wide - mean


@pytest.mark.parametrize("char, offset", [("f", 100.0), ("d", 0.0), ("d", 1e9)])
def test_pca(rng, char, offset):
    for n, m, k in ((2, 2, None), (5, 9, 3), (500, 6, 4), (1000, 40, None)):
        x = (offset + graded(rng, max(n, m), m, 30, "d")[:n] * 10).astype(char)
        mean, rows = centred(x)
        s = np.linalg.svd(rows.astype("d"), compute_uv=False)
        result = quiver.pca(x, k, scores=True)
        count = min(n, m) if k is None else k
        variances = s**2 / (n - 1)
        tolerance = 20 * np.finfo(char).eps * variances.sum()
        np.testing.assert_allclose(result.mean, mean, rtol=2 * np.finfo(char).eps, atol=1e-15)
        np.testing.assert_allclose(result.explained_variance, variances[:count], atol=tolerance)
        np.testing.assert_allclose(result.explained_variance_ratio,
                                   variances[:count] / variances.sum(), atol=1e-5)
        np.testing.assert_allclose(result.singular_values**2, s[:count]**2,
                                   atol=tolerance * (n - 1))
        rest = variances[count:].mean() if count < min(n, m) else 0.0
        np.testing.assert_allclose(result.noise_variance, rest, atol=tolerance)
        assert result.components.shape == (count, m) and result.components.dtype == np.dtype(char)
        assert_signs(result.components)
        exact = rows @ result.components.T.astype(np.longdouble)
        np.testing.assert_allclose(result.scores, exact.astype("d"),
                                   atol=500 * np.finfo(char).eps)


@pytest.mark.parametrize("char, exponents", [("f", (-25, 25)), ("d", (-300, -170, 160, 300))])
def test_pca_of_numbers_whose_squares_leave_the_range(rng, char, exponents):
    for exponent in exponents:
        x = (rng.standard_normal((300, 4)) * [4, 3, 2, 1] * 10.0**exponent).astype(char)
        rows = x.astype("d") / 10.0**exponent
        s, vh = np.linalg.svd(rows - rows.mean(axis=0))[1:]
        result = quiver.pca(x, 2, scores=True)
        eps = np.finfo(char).eps
        np.testing.assert_allclose(result.singular_values.astype("d") / 10.0**exponent, s[:2],
                                   rtol=20 * eps)
        np.testing.assert_allclose(result.explained_variance_ratio, (s**2 / (s**2).sum())[:2],
                                   rtol=20 * eps)
        np.testing.assert_allclose(np.abs(result.components @ vh.T), np.eye(2, 4), atol=1e3 * eps)
        assert_signs(result.components)
        exact = (rows - rows.mean(axis=0)) @ result.components.T.astype("d")
        np.testing.assert_allclose(result.scores.astype("d") / 10.0**exponent, exact,
                                   atol=100 * eps)
        if char == "f":
            variances = s[:2]**2 / 299 * 10.0**(2 * exponent)
            np.testing.assert_allclose(result.explained_variance, variances, rtol=20 * eps)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_pca_follows_scikit_learn(name):
    datasets = pytest.importorskip("sklearn.datasets")
    decomposition = pytest.importorskip("sklearn.decomposition")
    x = np.ascontiguousarray(getattr(datasets, "load_" + name)().data, dtype="d")
    theirs = decomposition.PCA(3, svd_solver="full").fit(x)
    ours = quiver.pca(x, 3, scores=True)
    signs = np.sign((ours.components * theirs.components_).sum(axis=1))[:, None]
    np.testing.assert_allclose(ours.components * signs, theirs.components_, atol=1e-9)
    np.testing.assert_allclose(ours.explained_variance, theirs.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(ours.explained_variance_ratio, theirs.explained_variance_ratio_,
                               rtol=1e-9)
    np.testing.assert_allclose(ours.singular_values, theirs.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(ours.mean, theirs.mean_, rtol=1e-12)
    np.testing.assert_allclose(ours.noise_variance, theirs.noise_variance_, rtol=1e-9)
    np.testing.assert_allclose(ours.scores * signs.T, theirs.transform(x), atol=1e-8)


def test_pca_refuses(rng):
    x = rng.standard_normal((6, 3))
    with pytest.raises(ValueError, match="6 rows of 3 columns have 1 to 3"):
        quiver.pca(x, 4)
    with pytest.raises(ValueError, match="at least one"):
        quiver.pca(x, 0)
    with pytest.raises(ValueError, match="at least 2 rows"):
        quiver.pca(x[:1])
    with pytest.raises(TypeError, match="complex"):
        quiver.pca(x * 1j)
    x[2, 1] = np.inf
    with pytest.raises(ValueError, match="column 1 of X"):
        quiver.pca(x)


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("shape", [(80, 30), (25, 70), (40, 40)])
def test_svds_of_small_matrices(rng, char, shape):
    eps = np.finfo(char).eps
    a = sp.random(*shape, 0.15, format="csr", random_state=rng)
    if char in "FD":
        a = a + 1j * sp.random(*shape, 0.15, format="csr", random_state=rng)
    a = a.astype(char).tocsr()
    dense = a.toarray()
    expected = np.linalg.svd(dense.astype("D"), compute_uv=False)
    for which, wanted in (("LM", expected[:5]), ("SM", expected[-5:])):
        u, s, vh, info = quiver.svds(a, 5, which=which, full_output=True)
        np.testing.assert_allclose(s, wanted, atol=100 * eps * expected[0])
        np.testing.assert_allclose(u.conj().T @ u, np.eye(5), atol=100 * eps)
        np.testing.assert_allclose(vh @ vh.conj().T, np.eye(5), atol=100 * eps)
        np.testing.assert_allclose(u.conj().T @ dense @ vh.conj().T, np.diag(s),
                                   atol=100 * eps * expected[0])
        assert_signs(vh)
        assert info.converged and info.verified and info.dense
        assert np.all(info.residuals <= 200 * eps * expected[0])


def test_svds_agrees_with_scipy(rng):
    a = sp.random(3000, 700, 0.004, format="csr", random_state=rng)
    theirs = np.sort(sp.linalg.svds(a, 6, return_singular_vectors=False))[::-1]
    u, s, vh, info = quiver.svds(a, 6, full_output=True)
    assert not info.dense and info.verified
    assert_signs(vh)
    np.testing.assert_allclose(s, theirs, rtol=1e-10)
    assert np.all(np.abs(s - theirs) <= info.errors + 1e-12)
    np.testing.assert_allclose(a @ vh.T, u * s, atol=1e-10)
    np.testing.assert_allclose(a.T @ u, vh.T * s, atol=1e-8)
    matrix = quiver.SparseMatrix(a)
    only_u, again, nothing = quiver.svds(matrix, 6, return_singular_vectors="u")
    assert only_u.shape == (3000, 6) and nothing is None
    np.testing.assert_allclose(again, s, rtol=1e-12)
    np.testing.assert_allclose(quiver.svds(a.T, 6, return_singular_vectors=False), s, rtol=1e-10)


def test_svds_of_equal_values(rng):
    """The verification among a thousand equal values ends at the default tolerance."""
    values = rng.choice([1.0, 2.0, 3.0], 2500)
    blocks = [v * np.linalg.qr(rng.standard_normal((2, 2)))[0] for v in values[:500]]
    a = sp.block_diag([sp.diags_array(values), *blocks], format="csr")
    for which, value in (("LM", 3.0), ("SM", 1.0)):
        s, info = quiver.svds(a, 6, which=which, full_output=True, maxiter=3000,
                              return_singular_vectors=False)
        np.testing.assert_allclose(s, value, rtol=1e-14)
        assert info.converged and info.verified and not info.dense


@pytest.mark.parametrize("char", "fdFD")
def test_svds_of_dense_arrays(rng, char):
    eps = np.finfo(char).eps
    for shape, order in (((600, 540), "C"), ((530, 620), "F"), ((30, 90), "F"), ((1, 4), "C")):
        a = rng.standard_normal(shape)
        if char in "FD":
            a = a + 1j * rng.standard_normal(shape)
        a[:, 0] *= 9  # a value that stands out
        a = np.asarray(a.astype(char), order=order)
        before = a.copy()
        expected = np.linalg.svd(a.astype("D"), compute_uv=False)
        k = min(*shape, 3)
        u, s, vh, info = quiver.svds(a, k, full_output=True)
        np.testing.assert_array_equal(a, before)
        np.testing.assert_allclose(s, expected[:k], atol=200 * eps * expected[0])
        assert np.all(np.abs(s - expected[:k]) <= info.errors + eps * expected[0])
        np.testing.assert_allclose(a @ vh.conj().T, u * s, atol=200 * eps * expected[0])
        np.testing.assert_allclose(u.conj().T @ a, s[:, None] * vh, atol=400 * eps * expected[0])
        assert_signs(vh)
        assert info.converged and info.verified and info.dense == (min(shape) <= 512)
    every_other = np.asarray(a.repeat(2, axis=1))[:, ::2]
    np.testing.assert_allclose(quiver.svds(every_other, 1, return_singular_vectors=False),
                               expected[:1], rtol=100 * eps)
    a = np.ones((20, 6), char)
    a[4, 2] = np.nan
    with pytest.raises(ValueError, match="column 2 of A"):
        quiver.svds(a, 1)


def test_svds_refuses():
    a = sp.random(8, 5, 0.5, format="csr", random_state=1)
    with pytest.raises(ValueError, match="k = 6, but a 8 x 5 matrix has 5"):
        quiver.svds(a, 6)
    with pytest.raises(ValueError, match="which"):
        quiver.svds(a, 2, which="LA")
    with pytest.raises(ValueError, match="return_singular_vectors"):
        quiver.svds(a, 2, return_singular_vectors="v")
    with pytest.raises(ValueError, match="k = 4, but a 3 x 3 matrix has 3"):
        quiver.svds(np.eye(3), 4)
    with pytest.raises(ValueError, match="dimensions"):
        quiver.svds(np.ones(3), 1)
    with pytest.raises(TypeError, match="sparse"):
        quiver.svds("matrix", 1)
