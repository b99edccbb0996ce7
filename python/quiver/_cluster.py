# SPDX-License-Identifier: BSD-3-Clause
"""k-means."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import dtype_of, library_name, number_from_zero, scalar_of, sparse_source, space_of, whole_number


class KMeans(NamedTuple):
    """The result of `kmeans`."""

    #: (k, d): the centres of the clusters, of the caller's array library.
    centers: Any
    #: (n,), int32: the number of the nearest centre of each point.
    labels: Any
    #: The sum of the squared distances of all points to their centres.
    inertia: float
    #: The iterations of the best run.
    n_iter: int
    #: Whether the best run met its tolerance.
    converged: bool
    #: The number of points of each cluster.
    sizes: np.ndarray
    #: The inertia before each iteration.
    history: np.ndarray


def kmeans(X: Any, k: int, *, init: Any = "k-means++", n_init: int = 1, max_iter: int = 300,
           tol: float = 1e-4, seed: int = 0, device: Any = None, stream: Any = None,
           comm: Any = None) -> KMeans:
    """Clusters of the rows of X around their means, by Lloyd's iteration.

    One iteration assigns each point to the nearest centre and moves each centre to the mean of its
    points, in one pass over X. An empty cluster takes the point that is farthest from the centre of
    its cluster. The same numbers of ranks and threads on the same device give the same bits.

    Parameters
    ----------
    X : array, (n, d)
        One point a row, d from 1 to 64. Real types other than float32 and float64 are converted.
        Arrays with contiguous rows are not copied. With `comm`, the rows of this rank.
    k : int
        The number of clusters, 1 to 64 and at most n.
    init : {'k-means++'} or array, (k, d)
        'k-means++': greedy k-means++ among max(4096, 256 k) random points, or among all points if
        there are fewer. An array has the first centres; there is then one run.
    n_init : int
        Number of runs from different starts; the result is the run with the least inertia.
    max_iter : int
        Largest number of iterations of a run.
    tol : float
        A run has converged when the sum of the squared shifts of the centres is at most `tol` times
        the mean variance of the columns of X, as in scikit-learn.
    seed : int
        Seed of the starts. The starts are the same for any number of ranks.
    device, stream, comm : optional
        As in `eigsh`.

    Returns
    -------
    KMeans
        centers, labels, inertia, n_iter, converged, sizes, history.

    Raises
    ------
    ValueError
        For k, d or another argument out of range, or X with NaN or infinity.
    TypeError
        For a sparse or complex X.

    Examples
    --------
    >>> import numpy as np, quiver
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
    >>> result = quiver.kmeans(X, 2)
    >>> sorted(result.centers.tolist()), result.inertia
    ([[0.0, 0.5], [9.0, 0.5]], 1.0)
    """
    if sparse_source(X) is not None:
        raise TypeError("X is a sparse matrix; an array is expected: pass X.toarray()")
    given = not isinstance(init, str)
    if not given and init != "k-means++":
        raise ValueError(f"init={init!r} is not 'k-means++' or an array of first centres")
    space = space_of(X, device=device, stream=stream).with_comm(comm)
    char = scalar_of(dtype_of(X) if library_name(X) else np.asarray(X).dtype)
    if char not in "fd":
        raise TypeError("X is complex; points are real numbers, one point a row")
    if getattr(X, "ndim", 2) == 1:
        raise ValueError("X has one dimension; one point a row is expected (X[:, None])")
    x = space.with_block_layout(space.array(X, char, "X"), "X")
    if x.ndim != 2:
        raise ValueError("X has one dimension; one point a row is expected (X[:, None])")
    n, d = x.shape
    starts = _starts(init, char) if given else None
    request = _core.KmeansRequest()
    request.k, request.tol = whole_number(k, "k"), number_from_zero(tol, "tol")
    request.max_iterations = whole_number(max_iter, "max_iter")
    request.runs = whole_number(n_init, "n_init")
    if whole_number(seed, "seed") < 0:
        raise ValueError(f"seed={seed} is negative")
    request.seed = whole_number(seed, "seed")
    labels = space.zeros((n,), "i")
    centers = np.zeros((min(max(request.k, 0), 64), d), dtype=char)
    raw_x, raw_labels = space.raws(x, labels)
    outcome = _core.kmeans(space.context, request, raw_x, starts, raw_labels, centers)
    return KMeans(space.from_numpy(centers), labels, outcome.inertia, outcome.iterations,
                  outcome.converged, np.array(outcome.sizes), np.array(outcome.history))


def _starts(init: Any, char: str) -> np.ndarray:
    """First centres in host memory."""
    if library_name(init) == "cupy":
        init = init.get()
    elif library_name(init) == "torch":
        init = init.detach().cpu()
    starts = np.ascontiguousarray(init, dtype=char)
    if starts.ndim != 2:
        raise ValueError(f"init has {starts.ndim} dimensions; (k, d) is expected")
    return starts
