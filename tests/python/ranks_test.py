# SPDX-License-Identifier: BSD-3-Clause
"""Problems distributed over the ranks of mpi4py have the results of one process. Runs with or without mpirun."""

import numpy as np
import pytest
import quiver
import scipy.linalg
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
        _, again, vh = quiver.svds(part(a, shape[0]).toarray(), 4, comm=COMM)
        np.testing.assert_allclose(again, s, rtol=1e-11)
        assert COMM.allreduce(vh.shape[1]) == shape[1]


def shuffled_grid(rng, side):
    """The Laplacian of a square grid whose points have random numbers, positive definite."""
    line = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    grid = sp.kronsum(line, line, format="csr")
    order = rng.permutation(side * side)
    return sp.csr_array(grid[order][:, order])


def everything(x):
    return np.concatenate(COMM.allgather(np.ascontiguousarray(x)))


@pytest.fixture
def grids(rng):
    """A matrix, this rank's rows of it, and the same distributed by its graph."""
    a = shuffled_grid(rng, int(rng.integers(18, 26)))
    rows = part(a, a.shape[0])
    try:
        return a, rows, quiver.SparseMatrix(rows, comm=COMM, partition="graph")
    except quiver.Error as error:
        assert "SCOTCH" in str(error)
        pytest.skip(str(error))


def test_a_partition_by_the_graph_reduces_halos(grids):
    a, rows, graph = grids
    plain = quiver.SparseMatrix(rows, comm=COMM)
    assert plain.partition == "rows" and plain.halo == len(
        np.setdiff1d(rows.indices, part(np.arange(a.shape[0]), a.shape[0])))
    if COMM.size == 1:
        assert graph.partition == "rows" and graph.halo == 0
        return
    assert graph.partition == graph.H.partition == "graph"
    assert COMM.allreduce(graph.halo) < COMM.allreduce(plain.halo) / 4
    # 1000 products receive many rows for so few entries; of a chain, next to nothing.
    assert quiver.SparseMatrix(rows, comm=COMM, partition="auto").partition == "graph"
    chain = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=a.shape, format="csr")
    assert quiver.SparseMatrix(part(chain, a.shape[0]), comm=COMM, partition="auto").partition == "rows"


def test_products_of_a_partitioned_matrix(grids, rng):
    a, rows, graph = grids
    x = rng.standard_normal((a.shape[0], 3))
    np.testing.assert_allclose(graph @ part(x, len(x)), part(a @ x, len(x)), atol=1e-12)
    np.testing.assert_allclose(graph @ part(x, len(x))[:, 0], part(a @ x[:, 0], len(x)), atol=1e-12)
    b = sp.csr_array(a + sp.diags_array(np.arange(1.0, len(x)), offsets=1))
    other = quiver.SparseMatrix(part(b, len(x)), comm=COMM, partition=graph)
    assert other.partition == graph.partition
    np.testing.assert_allclose(other @ part(x, len(x)), part(b @ x, len(x)), atol=1e-9)
    np.testing.assert_allclose(other.H @ part(x, len(x)), part(b.T @ x, len(x)), atol=1e-9)
    if COMM.size > 1:
        with pytest.raises(ValueError, match="replace_values"):
            graph.replace_values(rows.data)


@pytest.mark.parametrize("method", ["auto", "lanczos", "lobpcg", "jd"])
def test_eigsh_of_a_partitioned_matrix(grids, rng, method):
    a, rows, graph = grids
    n = a.shape[0]
    mass = sp.csr_array(sp.diags_array(rng.uniform(1, 2, n)))
    shared = quiver.SparseMatrix(part(mass, n), comm=COMM, partition=graph)
    start, known = rng.standard_normal((n, 2)), rng.standard_normal((n, 1))
    for m, operand, constraint in ((None, None, None), (mass, shared, None), (None, None, known)):
        if method == "lanczos" and m is not None:
            continue
        w, v = quiver.eigsh(graph, 3, M=operand, which="SA", v0=part(start, n), method=method, comm=COMM,
                            constraints=None if constraint is None else part(constraint, n))
        v = everything(v)
        m = sp.identity(n) if m is None else m
        if constraint is None:
            np.testing.assert_allclose(w, spectrum(a, m)[:3], atol=1e-9)
            assert abs(a @ v - (m @ v) * w).max() < 1e-8
        else:
            q = np.linalg.qr(constraint)[0]
            inside = scipy.linalg.null_space(q.T)
            np.testing.assert_allclose(w, np.linalg.eigvalsh(inside.T @ (a @ inside))[:3], atol=1e-9)
            assert abs(q.T @ v).max() < 1e-9
        np.testing.assert_allclose(v.T @ (m @ v), np.eye(3), atol=1e-9)


def test_operators_beside_a_partitioned_matrix(grids, rng):
    a, rows, graph = grids
    n = a.shape[0]
    inverse = np.linalg.inv(a.toarray())
    # A function has the caller's numbering.
    solve = quiver.LinearOperator(rows.shape, lambda X: part(inverse @ everything(X), n))
    b = rng.standard_normal((n, 2))
    for preconditioner in (None, "jacobi", "ic", solve):
        for guess in (None, b):
            x, info, details = quiver.cg(graph, part(b, n), None if guess is None else part(guess, n),
                                         rtol=1e-11, M=preconditioner, comm=COMM, full_output=True)
            assert info == 0
            np.testing.assert_allclose(a @ everything(x), b, atol=1e-9)
            assert preconditioner is not solve or details.iterations <= 3
    w = quiver.eigsh(graph, 3, sigma=4.013, OPinv=quiver.LinearOperator(
        rows.shape, lambda X: part(np.linalg.solve(a.toarray() - 4.013 * np.eye(n), everything(X)), n)),
        which="SA", comm=COMM, return_eigenvectors=False)
    np.testing.assert_allclose(w, wanted(spectrum(a), 3, "SA", 4.013), atol=1e-9)
    # A function as A, and a partitioned M.
    mass = sp.csr_array(sp.diags_array(rng.uniform(1, 2, n)))
    shared = quiver.SparseMatrix(part(mass, n), comm=COMM, partition=graph)
    product = quiver.LinearOperator(rows.shape, lambda X: part(a @ everything(X), n))
    w = quiver.eigsh(product, 2, M=shared, which="SA", comm=COMM, return_eigenvectors=False)
    np.testing.assert_allclose(w, spectrum(a, mass)[:2], atol=1e-9)
    if COMM.size > 1:
        other = quiver.SparseMatrix(part(mass, n), comm=COMM, partition="graph")
        with pytest.raises(ValueError, match="partitioned in another way"):
            quiver.eigsh(graph, 2, M=other, which="SA", comm=COMM)


def test_modes_and_singular_values_of_a_partitioned_matrix(grids, rng):
    a, rows, graph = grids
    n = a.shape[0]
    mass = sp.csr_array(sp.diags_array(rng.uniform(1, 2, n)))
    shared = quiver.SparseMatrix(part(mass, n), comm=COMM, partition=graph)
    result = quiver.modes(graph, shared, 3, unit="rad/s", comm=COMM)
    np.testing.assert_allclose(result.frequencies ** 2, spectrum(a, mass)[:3], rtol=1e-9)
    v = everything(result.vectors)
    assert abs(a @ v - (mass @ v) * result.frequencies ** 2).max() < 1e-7
    u, s, vh = quiver.svds(graph, 3, comm=COMM)
    np.testing.assert_allclose(s, spectrum(a)[::-1][:3], rtol=1e-10)
    np.testing.assert_allclose(everything(u) * s, a @ everything(vh.T), atol=1e-8)


def test_refused_partitions():
    rows = sp.csr_array(part(sp.identity(12, format="csr"), 12))
    with pytest.raises(ValueError, match="needs comm"):
        quiver.SparseMatrix(sp.identity(5), partition="graph")
    with pytest.raises(ValueError, match="auto, rows, graph"):
        quiver.SparseMatrix(rows, comm=COMM, partition="metis")
    if COMM.size > 1:
        with pytest.raises(ValueError, match="not square"):
            quiver.SparseMatrix(sp.csr_array((2, 2 * COMM.size + 1)), comm=COMM, partition="graph")
