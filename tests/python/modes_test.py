# SPDX-License-Identifier: BSD-3-Clause
"""Vibration modes against SciPy: dense solutions of random models, eigsh on larger ones."""

import os
import pathlib

import numpy as np
import pytest
import quiver
import scipy.io
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

DATA = pathlib.Path(os.environ.get("QUIVER_TEST_DATA", pathlib.Path(__file__).parents[3] / "shared/data"))


def springs(rng, nodes, char="d"):
    """Points in space, and the stiffness of springs between them, which has six rigid motions."""
    points = rng.uniform(-1, 1, (nodes, 3))
    k = np.zeros((nodes, 3, nodes, 3))
    for i in range(nodes):
        for step in range(1, 6):
            j = (i + step) % nodes
            line = points[i] - points[j]
            line /= np.linalg.norm(line)
            spring = rng.uniform(1, 3) * np.outer(line, line)
            for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                k[a, :, b, :] += sign * spring
    return points, sp.csr_array(k.reshape(3 * nodes, 3 * nodes).astype(char))


def masses(rng, n, kind):
    """A lumped mass matrix, without or with zeros, or one with entries off the diagonal."""
    diagonal = rng.uniform(1, 3, n)
    if kind == "singular":
        diagonal[::4] = 0
    off = rng.uniform(-0.3, 0.3, n - 1) if kind == "consistent" else np.zeros(n - 1)
    return sp.csr_array(sp.diags_array([off, diagonal, off], offsets=[-1, 0, 1]))


def finite_eigenvalues(k, m):
    """1 / mu - 1 for the positive eigenvalues mu of M x = mu (K + M) x with a positive definite
    K + M: K and M may be singular."""
    mu = scipy.linalg.eigh(m.toarray(), (k + m).toarray(), eigvals_only=True)
    return 1 / mu[mu > 1e-12][::-1] - 1


@pytest.mark.parametrize("kind", ["lumped", "consistent", "singular"])
@pytest.mark.parametrize("method", ["auto", "shift-invert"])
def test_dense_models(rng, kind, method):
    for nodes in (9, 40):
        points, k = springs(rng, nodes)
        m = masses(rng, 3 * nodes, kind)
        expected = finite_eigenvalues(k, m)
        result = quiver.modes(k, m, 12, unit="rad/s", coordinates=points, method=method)
        assert result.rigid == 6 and result.unstable == 0
        assert result.infinite == 3 * nodes - len(expected) and not result.infinite_at_least
        np.testing.assert_array_equal(result.frequencies[:6], 0)
        np.testing.assert_allclose(result.frequencies[6:], np.sqrt(expected[6:12]), rtol=1e-8)
        x = result.vectors
        np.testing.assert_allclose(x.T @ (m @ x), np.eye(12), atol=1e-9)
        np.testing.assert_allclose(k @ x, m @ x * result.eigenvalues, atol=1e-7)
        np.testing.assert_allclose(result.modal_masses, 1 / abs(x).max(axis=0)**2, rtol=1e-12)
        # Participation about the centre of mass.
        r = np.zeros((nodes, 3, 6))
        r[:, :, :3] = np.eye(3)
        for axis in range(3):
            r[:, :, 3 + axis] = np.cross(np.eye(3)[axis], points)
        r = r.reshape(-1, 6)
        np.testing.assert_allclose(result.participation[:, :3], x.T @ (m @ r[:, :3]), atol=1e-9)
        np.testing.assert_allclose(result.total_masses[:3], np.diag(r.T @ (m @ r))[:3])
        assert result.effective_masses.shape == (12, 6)
        if kind != "singular":
            # The rigid-body motions span all directions, so that six modes hold the whole mass.
            np.testing.assert_allclose(result.effective_masses[:6].sum(axis=0),
                                       result.total_masses, rtol=1e-8)


def test_range_and_near(rng):
    _, k = springs(rng, 30)
    m = masses(rng, 90, "consistent")
    f = np.sqrt(np.maximum(finite_eigenvalues(k, m), 0)) / (2 * np.pi)
    f[:6] = 0
    result = quiver.modes(k, m, range=(0, (f[19] + f[20]) / 2))
    np.testing.assert_allclose(result.frequencies, f[:20], rtol=1e-8)
    result = quiver.modes(k, m, range=((f[9] + f[10]) / 2, (f[19] + f[20]) / 2))
    np.testing.assert_allclose(result.frequencies, f[10:20], rtol=1e-8)
    result = quiver.modes(k, m, 1, near=f[15])
    np.testing.assert_allclose(result.frequencies, f[15:16], rtol=1e-8)
    assert quiver.modes(k, m, range=(100, 200)).frequencies.size == 0
    first, second = (quiver.modes(k, m, 9, translations=True) for _ in range(2))
    np.testing.assert_array_equal(first.vectors, second.vectors)
    assert first.participation.shape == (9, 3)


def test_unstable_and_single_precision(rng):
    _, k = springs(rng, 20)
    m = masses(rng, 60, "lumped")
    unstable = sp.csr_array(k - 0.5 * m)
    result = quiver.modes(unstable, m, 8, unit="rad/s")
    expected = scipy.linalg.eigh(unstable.toarray(), m.toarray(), eigvals_only=True)[:8]
    np.testing.assert_allclose(result.frequencies, np.sign(expected) * np.sqrt(abs(expected)),
                               rtol=1e-7)
    assert result.unstable == (expected < 0).sum() >= 6
    single = quiver.modes(k.astype("f"), m.astype("f"), 8, tol=1e-5, rigid_below=0.01)
    assert single.vectors.dtype == np.float32 and single.rigid == 6


def test_bad_input(rng):
    points, k = springs(rng, 6)
    m = masses(rng, 18, "lumped")
    negative = m.copy()
    negative.data[np.flatnonzero(negative.data > 0)[4]] = -1
    broken = k.copy()
    broken.data[3] = np.nan
    for arguments, options, error, text in [
            ((k, negative), {}, ValueError, "negative mass"),
            ((broken, m), {}, ValueError, "not finite|NaN"),
            ((k, m, 19), {}, ValueError, "19 modes are wanted"),
            ((k, 0 * m), {}, ValueError, "M is zero"),
            ((k.toarray(), m), {}, TypeError, "not a sparse matrix"),
            ((k.astype("D"), m), {}, TypeError, "complex"),
            ((k, m[:9, :9]), {}, ValueError, "9 rows, 18 are expected"),
            ((k, m), {"unit": "kHz"}, ValueError, "kHz"),
            ((k, m), {"range": (2, 1)}, ValueError, "not ascending"),
            ((k, m), {"range": (0, 1), "near": 2}, ValueError, "exclude each other"),
            ((k, m), {"near": float("nan")}, ValueError, "finite number"),
            ((k, m), {"coordinates": points[:4]}, ValueError, r"\(6, 3\) is expected"),
            ((sp.csr_array(sp.triu(k)), m), {}, ValueError, "not Hermitian")]:
        with pytest.raises(error, match=text):
            quiver.modes(*arguments, **options)


def load(name):
    path = DATA / f"{name}.mtx.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    return sp.csr_array(scipy.io.mmread(path))


def test_lund():
    k, m = load("lund_a"), load("lund_b")
    expected = scipy.linalg.eigh(k.toarray(), m.toarray(), eigvals_only=True)[:30]
    result = quiver.modes(k, m, 30)
    np.testing.assert_allclose(result.eigenvalues, expected, rtol=1e-8)


@pytest.mark.parametrize("names", [("bcsstk13", None), ("bcsstk09", None), (None, "maxwell_M1")])
def test_larger_matrices(names):
    """The matrices of the folder whose partner it lacks, with a partner of our own, against
    ARPACK's shift and invert."""
    k, m = (None if name is None else load(name) for name in names)
    n = (k if m is None else m).shape[0]
    if k is None:
        k = sp.csr_array(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))
    if m is None:
        m = sp.csr_array(sp.diags_array(k.diagonal() / k.diagonal().max()))
    result = quiver.modes(k, m, 12)
    expected = np.sort(scipy.sparse.linalg.eigsh(k, 12, m, sigma=0, return_eigenvectors=False))
    np.testing.assert_allclose(result.eigenvalues, expected, rtol=1e-6)
    assert result.info.verified
