# SPDX-License-Identifier: BSD-3-Clause
"""Spectral embedding of graphs and of points."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np

from . import _core
from ._arrays import (Space, dtype_of, library_name, number_from_zero, scalar_of, space_of,
                      sparse_source, whole_number)
from ._eigen import Iteration, NoConvergence, Progress, _exception
from ._operators import SparseMatrix, csr_arrays, operand_dtype, operand_space, sizes

#: For more points than this, 'auto' prefers the approximate neighbours of hnswlib.
_MANY_POINTS = 50000


class SpectralEmbedding(NamedTuple):
    """The result of `spectral_embedding`."""

    #: (n, k): the coordinates of the nodes, of the caller's array library.
    vectors: Any
    #: (k,): the eigenvalues of the Laplacian, ascending; exactly 0 for null vectors.
    eigenvalues: np.ndarray
    #: The number of connected components.
    components: int
    #: (n,), int64: the component of each node. Component 0 is the largest.
    labels: np.ndarray
    #: The number of nodes of each component.
    sizes: np.ndarray
    #: The number of nodes without neighbours.
    isolated: int
    #: ||L u - w u|| of each eigenvector u of length 1.
    residuals: np.ndarray
    #: The method that found the vectors that are not null vectors; 'auto' if there are none.
    method: str
    iterations: int
    seconds: float


def spectral_embedding(A: Any, k: int = 2, *, neighbors: int | None = None,
                       laplacian: str = "symmetric", scale: str = "scikit-learn",
                       drop_first: bool = True, symmetrise: bool = False, method: str = "auto",
                       tol: float = 1e-10, maxiter: int | None = None, max_seconds: float = 0,
                       seed: int = 1, comm: Any = None, device: Any = None, stream: Any = None,
                       callback: Callable[[Iteration], Any] | str | None = None) \
        -> SpectralEmbedding:
    """Eigenvectors of the smallest eigenvalues of a graph Laplacian, as coordinates of the nodes.

    Each connected component gives one null vector. The components are found by a search of the
    graph, so that no null vector is missing; an eigensolver finds the other vectors.

    Parameters
    ----------
    A : matrix, (n, n), or array, (n, d)
        The adjacency matrix, sparse (of scipy, cupyx or torch) or a dense array: symmetric, with
        weights from 0 on. Self-loops are ignored. With `neighbors`, an array of points.
    k : int
        The number of vectors, at most n (n - 1 with `drop_first`).
    neighbors : int, optional
        A has one point a row; the graph is that of `nearest_neighbours(A, neighbors)`.
    laplacian : {'symmetric', 'random-walk', 'combinatorial'}
        I - D^-1/2 A D^-1/2, I - D^-1 A or D - A. An isolated node has an empty row, as in
        `scipy.sparse.csgraph.laplacian`.
    scale : {'scikit-learn', 'pyg'}
        With the eigenvectors u of length 1: 'scikit-learn' returns D^-1/2 u (u for
        'combinatorial'), as `sklearn.manifold.spectral_embedding`. 'pyg' returns u (for
        'random-walk' D^-1/2 u scaled to length 1), as `AddLaplacianEigenvectorPE` of PyG. In both
        the element of a vector that is largest in magnitude is positive.
    drop_first : bool
        Omit the first vector, which is the same on all nodes of a connected graph.
    symmetrise : bool
        Take (A + A^T) / 2 for a directed graph, which raises ValueError otherwise.
    method, tol, maxiter, max_seconds, callback : optional
        As in `eigsh`. Vectors have converged when ``||L u - w u|| <= tol ||L||``.
    seed : int
        Seed of the start vectors.
    comm, device, stream : optional
        As in `eigsh`. With `comm`, A has the rows of this rank, and so do vectors and labels.

    Returns
    -------
    SpectralEmbedding
        vectors, eigenvalues, components, labels, sizes, isolated, residuals, method, iterations,
        seconds.

    Raises
    ------
    ValueError
        For a directed graph, weights that are negative, complex or not finite, k out of range, or
        `neighbors` together with `comm`.
    TypeError
        If A is a `SparseMatrix`.
    NoConvergence
        If the solver gave up. `eigenvalues` and `eigenvectors` are those found so far, `info` is a
        `SpectralEmbedding` with them.

    Examples
    --------
    >>> import numpy as np, quiver
    >>> ring = np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1)
    >>> A = np.block([[ring, np.zeros((4, 4))], [np.zeros((4, 4)), ring]])
    >>> result = quiver.spectral_embedding(A, 3)
    >>> result.components, result.eigenvalues.round(6).tolist()
    (2, [0.0, 1.0, 1.0])
    """
    if isinstance(A, SparseMatrix):
        raise TypeError("A: a matrix of scipy, cupyx or torch is expected, not a SparseMatrix")
    if neighbors is not None:
        if comm is not None:
            raise ValueError("neighbors: the points of several ranks are not supported; make the "
                             "graph first, and pass the rows of this rank")
        space = space_of(A, device=device, stream=stream)
        A = nearest_neighbours(A, neighbors)
    elif sparse_source(A) is None:
        A = A if library_name(A) else np.asarray(A)
        space = space_of(A, device=device, stream=stream).with_comm(comm)
        if A.ndim != 2:
            raise ValueError(f"A has {A.ndim} dimensions; an adjacency matrix is expected")
    else:
        space = operand_space(A, (), device, stream, comm)
    rows, _ = sizes(space, ("A", A))
    char = scalar_of(operand_dtype(A))
    if char not in "fd":
        raise ValueError("A is complex; the weights of a graph are real")
    request, graph = _core.EigenRequest(), _core.GraphRequest()
    request.k, request.method = min(max(whole_number(k, "k"), -1), 2**31 - 1), method
    request.tol, request.seed = number_from_zero(tol, "tol"), whole_number(seed, "seed")
    request.max_seconds = number_from_zero(max_seconds, "max_seconds")
    if maxiter is not None:
        if maxiter < 1:
            raise ValueError(f"maxiter={maxiter!r} must be at least 1")
        request.max_iterations = whole_number(maxiter, "maxiter")
    graph.laplacian, graph.scale = laplacian, scale
    graph.drop_first, graph.symmetrise = bool(drop_first), bool(symmetrise)
    indptr, indices, data = _host_rows(A, space)
    with Progress(callback, "vector") as progress, space.entered():
        outcome = _core.spectral_embedding(
            space.context, request, graph, np.ascontiguousarray(indptr, dtype=np.int64),
            np.ascontiguousarray(indices, dtype=np.int64), np.ascontiguousarray(data, dtype=char),
            progress)
        pairs = outcome.pairs
        vectors = space.empty((rows, len(pairs.eigenvalues)), char)
        if len(pairs.eigenvalues) > 0:
            pairs.copy_vectors(space.raw(vectors))
    sizes_of_components = np.array(outcome.sizes)
    result = SpectralEmbedding(
        vectors, np.array(pairs.eigenvalues), len(sizes_of_components),
        np.array(outcome.labels, dtype=np.int64), sizes_of_components, outcome.isolated,
        np.array(pairs.residuals), pairs.method, pairs.iterations, pairs.seconds)
    if not pairs.converged:
        raise _exception(NoConvergence,
                         f"no convergence: {pairs.message or 'the solver gave up'}",
                         result.eigenvalues, vectors, result)
    return result


def nearest_neighbours(X: Any, k: int, *, library: str = "auto") -> Any:
    """The graph of the k nearest neighbours of points, computed on the host.

    Parameters
    ----------
    X : array, (n, d)
        One point a row, with finite numbers.
    k : int
        The number of neighbours of each point, without the point itself; less than n.
    library : {'auto', 'scikit-learn', 'hnswlib', 'scipy'}
        The library that finds the neighbours; that of hnswlib are approximate. 'auto': hnswlib for
        more than 50,000 points, else scikit-learn, else scipy, as far as they are installed.

    Returns
    -------
    scipy.sparse.csr_array, (n, n)
        (N + N^T) / 2, where N has a 1 for each neighbour: the affinity of
        ``sklearn.manifold.SpectralEmbedding(affinity='nearest_neighbors', n_neighbors=k + 1)``.

    Raises
    ------
    ValueError
        For X that is not a real matrix of finite numbers, or k out of range.
    ImportError
        If the library is not installed; with 'auto', if none of them is.

    Examples
    --------
    >>> import numpy as np, quiver
    >>> quiver.nearest_neighbours(np.array([[0.0], [1.0], [3.0]]), 1).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.5, 0.0]]
    """
    import scipy.sparse

    if library_name(X) == "cupy":
        X = X.get()
    elif library_name(X) == "torch":
        X = X.detach().cpu()
    x = np.ascontiguousarray(X)
    if x.ndim != 2 or x.dtype.kind not in "fiub":
        raise ValueError("points: a real array with one point a row is expected")
    x = x.astype(np.float64, copy=False)
    n, k = len(x), whole_number(k, "k")
    if not 1 <= k < n:
        raise ValueError(f"{k} neighbours of {n} points: from 1 to n - 1 are possible")
    if not np.isfinite(x).all():
        row = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
        raise ValueError(f"point {row} (counted from 0) has NaN or infinity")
    found = _find_neighbours(x, k + 1, library)
    # Among equal points the point itself need not be the first, and may be missing.
    rows = np.arange(n)
    other = found != rows[:, None]
    other[other.all(axis=1), -1] = False
    # scikit-learn takes indices of 32 bits only.
    index = np.int32 if 2 * n * k < 2**31 else np.int64
    graph = scipy.sparse.csr_array(
        (np.ones(n * k), found[other].astype(index), np.arange(0, n * k + 1, k, dtype=index)),
        shape=(n, n))
    return ((graph + graph.T) / 2).tocsr()


def _find_neighbours(x: np.ndarray, count: int, library: str) -> np.ndarray:
    """The numbers of the `count` nearest points of each point, which include the point itself."""
    modules = {"hnswlib": "hnswlib", "scikit-learn": "sklearn.neighbors", "scipy": "scipy.spatial"}
    if library != "auto" and library not in modules:
        raise ValueError(f"library={library!r} is not one of auto, {', '.join(modules)}")
    names = [library] if library != "auto" else \
        [name for name in modules if name != "hnswlib" or len(x) > _MANY_POINTS]
    for name in names:
        try:
            __import__(modules[name])
        except ImportError:
            if name == names[-1]:
                raise ImportError(f"nearest neighbours need {name}: pip install {name}") from None
            continue
        break
    if name == "hnswlib":
        import hnswlib

        index = hnswlib.Index(space="l2", dim=x.shape[1])
        index.init_index(max_elements=len(x), ef_construction=200, M=16, random_seed=1)
        index.add_items(x)
        index.set_ef(max(64, 2 * count))
        return np.asarray(index.knn_query(x, count)[0], dtype=np.int64)
    if name == "scikit-learn":
        import sklearn.neighbors

        search = sklearn.neighbors.NearestNeighbors(n_neighbors=count).fit(x)
        return np.asarray(search.kneighbors(x, return_distance=False))
    import scipy.spatial

    return np.asarray(scipy.spatial.cKDTree(x).query(x, count, workers=-1)[1])


def _host_rows(a: Any, space: Space) -> Any:
    """Row offsets, columns and values of a matrix in host memory."""
    if sparse_source(a) is not None:
        return csr_arrays(a, space)
    if library_name(a) == "torch":
        a = a.detach().cpu()
    dense = np.asarray(a.get() if library_name(a) == "cupy" else a)
    rows, columns = np.nonzero(dense)
    return np.searchsorted(rows, np.arange(len(dense) + 1)), columns, dense[rows, columns]
