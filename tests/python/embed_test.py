# SPDX-License-Identifier: BSD-3-Clause
"""Spectral embedding against dense eigenvectors of SciPy's Laplacian, and against scikit-learn, if
it is installed."""

import numpy as np
import pytest
import quiver
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, laplacian


def random_graph(rng, n, parts, degree=3.0, char="d"):
    """A random graph with at least `parts` components, isolated nodes and self-loops."""
    part = rng.integers(0, parts, n)
    rows, columns = rng.integers(0, n, (2, int(degree * n)))
    keep = part[rows] == part[columns]
    weights = rng.integers(1, 17, keep.sum()) / 8
    a = sp.coo_array((weights, (rows[keep], columns[keep])), shape=(n, n)).tocsr()
    return (a + a.T).astype(char)


def check(a, result, k, drop=1, tol=1e-9):
    dense = np.asarray(a.toarray() if sp.issparse(a) else a, dtype="d")
    matrix, root = laplacian(dense, normed=True, return_diag=True)
    w = np.linalg.eigvalsh(matrix)
    count, labels = connected_components(sp.csr_array(dense))
    assert result.components == count
    # The labels agree up to their numbers, which descend by size.
    assert len(set(zip(labels, result.labels))) == count
    np.testing.assert_array_equal(result.sizes, np.sort(np.bincount(labels))[::-1])
    np.testing.assert_array_equal(np.bincount(result.labels), result.sizes)
    np.testing.assert_allclose(result.eigenvalues, w[drop:drop + k], atol=tol)
    u = root[:, None] * result.vectors
    np.testing.assert_allclose(u.T @ u, np.eye(k), atol=10 * tol)
    assert np.linalg.norm(matrix @ u - u * result.eigenvalues) < tol * k
    x = np.asarray(result.vectors)
    assert (x[np.abs(x).argmax(axis=0), np.arange(k)] > 0).all()


@pytest.mark.parametrize("parts", [1, 3, 30])
def test_follows_the_definition(rng, parts):
    for k, drop in ((1, 1), (6, 1), (9, 0)):
        a = random_graph(rng, 150, parts)
        check(a, quiver.spectral_embedding(a, k, drop_first=bool(drop)), k, drop)
    for form in (sp.coo_array, sp.csc_array, np.asarray):
        b = form(a.toarray() if form is np.asarray else a)
        check(b, quiver.spectral_embedding(b, 5), 5)
    result = quiver.spectral_embedding(random_graph(rng, 200, parts, 4.0, "f"), 4)
    assert result.vectors.dtype == np.float32


def test_conventions(rng):
    a = random_graph(rng, 120, 1, 8.0)
    matrix, root = laplacian(a.toarray(), normed=True, return_diag=True)
    w, u = np.linalg.eigh(matrix)
    u, w = u[:, w > 1e-9][:, :4], w[w > 1e-9][:4]
    components = connected_components(a)[0]

    def close(x, expected):
        expected = expected * np.sign(expected[np.abs(expected).argmax(axis=0), np.arange(4)])
        np.testing.assert_allclose(x[:, components:], expected, atol=1e-6)

    k = components + 4
    for kind in ("symmetric", "random-walk"):
        plain = quiver.spectral_embedding(a, k, laplacian=kind, drop_first=False)
        np.testing.assert_allclose(plain.eigenvalues[components:], w, atol=1e-9)
        close(plain.vectors, u / root[:, None])
    pyg = quiver.spectral_embedding(a, k, scale="pyg", drop_first=False)
    close(pyg.vectors, u)
    pyg = quiver.spectral_embedding(a, k, scale="pyg", laplacian="random-walk", drop_first=False)
    x = u / root[:, None]
    close(pyg.vectors, x / np.linalg.norm(x, axis=0))
    combinatorial = quiver.spectral_embedding(a, 3, laplacian="combinatorial")
    values = np.linalg.eigvalsh(laplacian(a.toarray()))
    np.testing.assert_allclose(combinatorial.eigenvalues, values[1:4], atol=1e-8)


def test_scikit_learn(rng):
    manifold = pytest.importorskip("sklearn.manifold")
    points = rng.standard_normal((400, 3))
    graph = quiver.nearest_neighbours(points, 9)
    theirs = manifold.SpectralEmbedding(affinity="nearest_neighbors", n_neighbors=10).fit(points)
    # scikit-learn counts the point itself as a neighbour, a self-loop.
    np.testing.assert_allclose((graph + sp.eye_array(400)).toarray(),
                               theirs.affinity_matrix_.toarray())
    for norm in (True, False):
        for drop in (True, False):
            x = manifold.spectral_embedding(graph, n_components=5, norm_laplacian=norm,
                                            drop_first=drop, eigen_solver="arpack", random_state=0)
            ours = quiver.spectral_embedding(graph, 5, drop_first=drop,
                                             laplacian="symmetric" if norm else "combinatorial")
            np.testing.assert_allclose(ours.vectors, x, atol=1e-7)


@pytest.mark.parametrize("library", ["scipy", "scikit-learn", "hnswlib", "auto"])
def test_nearest_neighbours(rng, library):
    if library in ("scikit-learn", "hnswlib"):
        pytest.importorskip("sklearn" if library == "scikit-learn" else library)
    x = rng.standard_normal((90, 4))
    x[10:14] = x[10]  # equal points
    graph = quiver.nearest_neighbours(x, 5, library=library).toarray()
    distance = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    assert (graph == graph.T).all() and not graph.diagonal().any() and graph.sum() == 90 * 5
    for i in np.delete(np.arange(90), np.arange(10, 14)):
        nearest = np.argsort(distance[i])[:5]
        if not set(nearest) & set(range(10, 14)):
            assert (graph[i, nearest] > 0).all()


def test_points(rng):
    x = np.concatenate([rng.standard_normal((60, 2)) + 100 * c for c in range(3)])
    result = quiver.spectral_embedding(x, 4, neighbors=6)
    assert result.components == 3 and (result.eigenvalues[:2] == 0).all()
    check(quiver.nearest_neighbours(x, 6), result, 4)
    assert len(set(zip(result.labels, np.arange(180) // 60))) == 3


def test_many_components():
    a = sp.block_diag([np.ones((3, 3))] * 1000)
    result = quiver.spectral_embedding(a, 20)
    assert result.components == 1000 and not result.eigenvalues.any() and result.method == "auto"
    check(sp.block_diag([np.ones((3, 3))] * 100), quiver.spectral_embedding(
        sp.block_diag([np.ones((3, 3))] * 100), 150), 150)


def test_torch(rng):
    torch = pytest.importorskip("torch")
    a = random_graph(rng, 80, 2)
    result = quiver.spectral_embedding(torch.from_numpy(a.toarray()).to_sparse(), 3)
    assert isinstance(result.vectors, torch.Tensor)
    np.testing.assert_array_equal(result.vectors, quiver.spectral_embedding(a, 3).vectors)


def test_stops_and_reports(rng):
    a = random_graph(rng, 2000, 1, 6.0)
    seen = []
    with pytest.raises(quiver.NoConvergence) as stopped:
        quiver.spectral_embedding(a, 3, method="chebyshev", maxiter=1, callback=seen.append)
    assert seen and isinstance(stopped.value.info, quiver.SpectralEmbedding)


def test_errors(rng):
    a = random_graph(rng, 30, 1)
    directed = a.copy()
    directed.data[directed.indptr[3]] += 1
    bad = a.copy()
    bad.data[5] = np.nan
    for arguments, words, match in [
            ((a, 0), {}, "k = 0, but at least one"),
            ((a, 30), {}, "at most 29 for 30 nodes"),
            ((-a, 2), {}, "from 0 on"),
            ((bad, 2), {}, "not finite"),
            ((directed, 2), {}, "the edges are directed.*symmetrise=True"),
            ((a.astype("D"), 2), {}, "complex"),
            ((a[:, :20], 2), {}, "square"),
            ((a, 2), {"laplacian": "other"}, "laplacian='other' is not one of symmetric"),
            ((a, 2), {"scale": "other"}, "scale='other'"),
            ((a, 2), {"method": "other"}, "method='other'"),
            ((np.zeros((5, 2)), 1), {"neighbors": 5}, "5 neighbours of 5 points"),
            ((np.full((5, 2), np.inf), 1), {"neighbors": 2}, "point 0 .* infinity")]:
        with pytest.raises(ValueError, match=match):
            quiver.spectral_embedding(*arguments, **words)
    with pytest.raises(TypeError):
        quiver.spectral_embedding(quiver.SparseMatrix(a), 2)
    check((directed + directed.T) / 2, quiver.spectral_embedding(directed, 2, symmetrise=True), 2)
