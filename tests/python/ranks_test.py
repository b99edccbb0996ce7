# SPDX-License-Identifier: BSD-3-Clause
"""Problems distributed over the ranks of mpi4py have the results of one process. Runs with or without mpirun."""

import numpy as np
import pytest
import quiver
import scipy.sparse as sp
from support import random_definite, random_hermitian, spectrum, wanted

MPI = pytest.importorskip("mpi4py.MPI")
COMM = MPI.COMM_WORLD


def part(x, n):
    """This rank's rows."""
    return x[n * COMM.rank // COMM.size:n * (COMM.rank + 1) // COMM.size]


@pytest.mark.parametrize("which", ["LM", "SA", "BE"])
def test_eigsh(rng, which):
    for char in "dF":
        n = int(rng.integers(20, 200))
        a = random_hermitian(rng, n, char)
        rows = part(a, n)
        w, v = quiver.eigsh(rows, 4, which=which, comm=COMM)
        eps = np.finfo(char).eps
        np.testing.assert_allclose(w, wanted(spectrum(a), 4, which), atol=2000 * eps)
        assert v.shape == (rows.shape[0], 4)
        everything = np.concatenate(COMM.allgather(v))
        assert abs(a @ everything - everything * w).max() < 5000 * eps


def test_functions_and_linear_solves(rng):
    n = 90
    a = random_definite(rng, n, "d")
    rows = part(a, n)
    b = rng.standard_normal((n, 3))
    for matrix in (rows, quiver.SparseMatrix(rows, comm=COMM),
                   quiver.LinearOperator(rows.shape,
                                         lambda X: rows @ np.concatenate(COMM.allgather(X)))):
        x, info = quiver.cg(matrix, part(b, n), rtol=1e-11, atol=1e-11, comm=COMM)
        assert info == 0
        everything = np.concatenate(COMM.allgather(x))
        np.testing.assert_allclose(a @ everything, b, atol=1e-9)
        w = quiver.eigsh(matrix, 2, which="SA", comm=COMM, return_eigenvectors=False)
        np.testing.assert_allclose(w, spectrum(a)[:2], atol=1e-12)


def test_rectangular_matrices_and_adjoints(rng):
    for m, n in ((31, 50), (50, 31)):
        a = sp.random(m, n, 0.3, format="csr", random_state=rng)
        x, y = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
        # The rows of X: as even as possible.
        shares = [n // COMM.size + (rank < n % COMM.size) for rank in range(COMM.size)]
        mine = slice(sum(shares[:COMM.rank]), sum(shares[:COMM.rank + 1]))
        matrix = quiver.SparseMatrix(part(a, m), comm=COMM)
        np.testing.assert_allclose(matrix @ x[mine], part(a @ x, m), atol=1e-12)
        np.testing.assert_allclose(matrix.H @ part(y, m), (a.T @ y)[mine], atol=1e-12)


def test_refused():
    with pytest.raises(TypeError, match="mpi4py"):
        quiver.eigsh(sp.identity(5), 1, comm="world")
    with pytest.raises(ValueError, match="square"):
        quiver.eigsh(sp.csr_matrix((2, 2 * COMM.size + 1)), 1, comm=COMM)


def test_kmeans(rng):
    middles = rng.uniform(-8, 8, (6, 3))
    x = middles[np.arange(3000) % 6] + 0.05 * rng.standard_normal((3000, 3))
    rows = part(x, 3000)
    result = quiver.kmeans(rows, 6, n_init=4, comm=COMM)
    alone = quiver.kmeans(x, 6, n_init=4)
    np.testing.assert_allclose(result.inertia, alone.inertia, rtol=1e-12)
    np.testing.assert_allclose(result.centers, alone.centers, atol=1e-12)
    np.testing.assert_array_equal(np.concatenate(COMM.allgather(result.labels)), alone.labels)


def test_spectral_embedding(rng):
    n = 600
    rows, columns = rng.integers(0, n, (2, 3 * n))
    keep = rows % 3 == columns % 3
    a = sp.coo_matrix((np.ones(keep.sum()), (rows[keep], columns[keep])), shape=(n, n)).tocsr()
    a = a + a.T
    result = quiver.spectral_embedding(part(a, n), 12, comm=COMM, method="lanczos")
    alone = quiver.spectral_embedding(a, 12)
    assert result.components == alone.components and result.isolated == alone.isolated
    np.testing.assert_array_equal(result.sizes, alone.sizes)
    np.testing.assert_array_equal(np.concatenate(COMM.allgather(result.labels)), alone.labels)
    np.testing.assert_allclose(result.eigenvalues, alone.eigenvalues, atol=1e-9)
    with pytest.raises(ValueError, match="neighbors"):
        quiver.spectral_embedding(a, 2, neighbors=3, comm=COMM)


def test_modes(rng):
    nodes = 24
    chain = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(nodes, nodes)).tolil()
    chain[0, 0] = chain[nodes - 1, nodes - 1] = 1  # free ends
    k = sp.csr_array(sp.kron(chain, sp.diags_array(rng.uniform(1, 3, 3)), format="csr"))
    m = sp.csr_array(sp.diags_array(np.repeat(rng.uniform(1, 3, nodes), 3)))
    points = rng.uniform(-1, 1, (nodes, 3))
    result = quiver.modes(part(k, 3 * nodes), part(m, 3 * nodes), 8, coordinates=part(points, nodes),
                          comm=COMM)
    alone = quiver.modes(k, m, 8, coordinates=points)
    np.testing.assert_allclose(result.frequencies, alone.frequencies, rtol=1e-9)
    assert result.rigid == alone.rigid == 3
    np.testing.assert_allclose(result.total_masses, alone.total_masses, rtol=1e-12)
    np.testing.assert_allclose(result.effective_masses[3:], alone.effective_masses[3:], atol=1e-7)
    everything = np.concatenate(COMM.allgather(result.vectors))
    np.testing.assert_allclose(everything.T @ (m @ everything), np.eye(8), atol=1e-10)


def test_singular_values(rng):
    x = 1e3 + rng.standard_normal((500, 6)) * np.logspace(0, -4, 6)
    rows = part(x, 500)
    ours = quiver.svd(rows, comm=COMM)
    alone = quiver.svd(x)
    np.testing.assert_allclose(ours.s, alone.s, rtol=1e-9)
    np.testing.assert_allclose(ours.U * ours.s @ ours.Vh, rows, atol=1e-9)
    points = quiver.pca(rows, 4, scores=True, comm=COMM)
    alone = quiver.pca(x, 4, scores=True)
    np.testing.assert_allclose(points.explained_variance, alone.explained_variance, atol=1e-13)
    np.testing.assert_allclose(points.mean, alone.mean, rtol=1e-14)
    np.testing.assert_allclose(np.concatenate(COMM.allgather(points.scores)), alone.scores, atol=1e-8)
    for shape in ((700, 600), (560, 800)):
        a = sp.random(*shape, 0.01, format="csr", random_state=rng)
        u, s, vh = quiver.svds(part(a, shape[0]), 4, comm=COMM)
        np.testing.assert_allclose(s, np.linalg.svd(a.toarray(), compute_uv=False)[:4], rtol=1e-11)
        v = np.concatenate(COMM.allgather(np.ascontiguousarray(vh.T)))
        np.testing.assert_allclose(part(a, shape[0]) @ v, u * s, atol=1e-10)
