# SPDX-License-Identifier: BSD-3-Clause
"""Singular values and vectors, and principal components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import (Space, dtype_of, library_name, number_from_zero, real_scalar,
                      scalar_of, space_of, sparse_source, whole_number)
from ._operators import SparseMatrix


class SVD(NamedTuple):
    """The result of `svd`: X = U diag(s) Vh."""

    #: (n, k): the left vectors, of the caller's array library.
    U: Any
    #: (k,): the singular values, descending.
    s: Any
    #: (k, m): the right vectors.
    Vh: Any


class PCA(NamedTuple):
    """The result of `pca`; the names without the final underscore of scikit-learn's."""

    #: (k, m): orthonormal rows, the largest variance first. The element of largest modulus of each
    #: row is positive, as in scikit-learn.
    components: Any
    #: (k,): the variances of the scores, with divisor n - 1, and their part of the total variance.
    #: The variances are float64, because squares may leave the range of float32.
    explained_variance: Any
    explained_variance_ratio: Any
    #: (k,): the singular values of the centred X.
    singular_values: Any
    #: (m,): the means of the columns.
    mean: Any
    #: The mean of the variances of the components that are left out.
    noise_variance: float
    #: A bound of the rounding errors of each variance.
    error: float
    #: (n, k): the scores (X - mean) components^T, or None.
    scores: Any


@dataclass
class SVDSInfo:
    """The outcome of `svds`, its last result with ``full_output=True``."""

    #: sqrt(||A v - s u||^2 + ||A^H u - s v||^2) of each triplet.
    residuals: np.ndarray
    #: For each value s a number d: A has a singular value in [s - d, s + d].
    errors: np.ndarray
    norm_estimate: float
    converged: bool
    #: True if no copy of a wanted singular value is missing; see `eigsh`.
    verified: bool
    #: True if all singular values were computed.
    dense: bool
    iterations: int
    #: Products with A and A^H, counted by column.
    products: int
    seconds: float
    message: str


def _matrix(x: Any, name: str, device: Any, stream: Any, comm: Any) -> tuple[Space, str, Any]:
    """The space, the scalar and the rows of a dense matrix, in any layout."""
    space = space_of(x, device=device, stream=stream).with_comm(comm)
    char = scalar_of(dtype_of(x) if library_name(x) else np.asarray(x).dtype)
    matrix = space.array(x, char, name)
    if matrix.ndim != 2:
        raise ValueError(f"{name} has {matrix.ndim} dimensions; a matrix is expected")
    return space, char, matrix


def _array(x: Any, name: str, device: Any, stream: Any, comm: Any) -> tuple[Space, str, Any]:
    """The space, the scalar and the rows of a dense block."""
    if sparse_source(x) is not None or isinstance(x, SparseMatrix):
        raise TypeError(f"{name} is a sparse matrix; an array is expected: pass {name}.toarray(), or "
                        "call svds")
    space, char, block = _matrix(x, name, device, stream, comm)
    return space, char, space.with_block_layout(block, name)


def svd(X: Any, k: int | None = None, *, compute_uv: bool = True, one_pass: bool = False,
        device: Any = None, stream: Any = None, comm: Any = None) -> Any:
    """The singular value decomposition X = U diag(s) Vh of a tall & skinny block.

    Parameters
    ----------
    X : array, (n, m)
        n at least m. Arrays with contiguous rows are not copied. With `comm`, the rows of this rank.
    k : int, optional
        The number of singular values, the largest first; all m if not given.
    compute_uv : bool
        False: only the singular values.
    one_pass : bool
        With ``compute_uv=False``: the values come from the Gram matrix alone. A value s then has an
        error of about eps s[0]^2 / s, for float32 of about eps s[0] at most.
    device, stream, comm : optional
        As in `eigsh`.

    Returns
    -------
    SVD
        U, s, Vh. Errors of all s are small multiples of eps s[0]. The element of largest modulus of
        each row of Vh is positive. With ``compute_uv=False`` only s.

    Raises
    ------
    ValueError
        For k out of range, fewer rows than columns, NaN or infinity in X.
    TypeError
        For a sparse X.

    Examples
    --------
    >>> import numpy as np, quiver
    >>> X = np.array([[3.0, 0.0], [0.0, -2.0], [0.0, 0.0]])
    >>> U, s, Vh = quiver.svd(X)
    >>> s.tolist(), (U * s @ Vh).tolist()
    ([3.0, 2.0], [[3.0, 0.0], [0.0, -2.0], [0.0, 0.0]])
    """
    space, char, x = _array(X, "X", device, stream, comm)
    n, m = x.shape
    wanted = m if k is None else whole_number(k, "k")
    if k is not None and not 1 <= wanted <= m:
        raise ValueError(f"k={k}: X has {m} singular values")
    left = space.empty((n, wanted if compute_uv else 0), char)
    right = np.zeros((m, wanted), dtype=char)
    raw_x, raw_left = space.raws(x, left)
    outcome = _core.svd(space.context, char, raw_x, wanted, bool(one_pass), raw_left, right)
    values = space.from_numpy(np.array(outcome.values, dtype=real_scalar(char)))
    if not compute_uv:
        return values
    return SVD(left, values, space.from_numpy(np.ascontiguousarray(right.conj().T)))


def pca(X: Any, k: int | None = None, *, scores: bool = False, device: Any = None,
        stream: Any = None, comm: Any = None) -> PCA:
    """Principal components of the rows of X.

    The means and the products of the centred columns come from one pass over X and are summed in
    double precision. Large means cost no digits of the variances.

    Parameters
    ----------
    X : array, (n, m)
        One point a row, real. Types other than float32 and float64 are converted. With `comm`, the
        rows of this rank.
    k : int, optional
        The number of components; min(n, m) if not given.
    scores : bool
        True: the scores of all rows are computed as well.
    device, stream, comm : optional
        As in `eigsh`.

    Returns
    -------
    PCA
        components, explained_variance, explained_variance_ratio, singular_values, mean,
        noise_variance, error, scores.

    Raises
    ------
    ValueError
        For k out of range, fewer than two rows, NaN or infinity in X.
    TypeError
        For a sparse or complex X.

    Examples
    --------
    >>> import numpy as np, quiver
    >>> X = 1e8 + np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    >>> result = quiver.pca(X, 1, scores=True)
    >>> result.explained_variance.round(9).tolist(), result.scores.round(6).tolist()
    ([2.0], [[-1.414214], [0.0], [1.414214]])
    """
    space, char, x = _array(X, "X", device, stream, comm)
    if char not in "fd":
        raise TypeError("X is complex; points are real numbers, one point a row")
    if k is not None and whole_number(k, "k") < 1:
        raise ValueError(f"k={k}: at least one component is needed")
    raw_x, = space.raws(x)
    outcome = _core.pca(space.context, raw_x, 0 if k is None else whole_number(k, "k"))
    count = len(outcome.variances)

    def array(numbers: Any) -> Any:
        return space.from_numpy(np.array(numbers, dtype=char))

    found = None
    if scores:
        found = space.empty((x.shape[0], count), char)
        raw_x, raw_scores = space.raws(x, found)
        _core.pca_scores(space.context, outcome, raw_x, raw_scores)
    components = np.array(outcome.components, dtype=char).reshape(count, x.shape[1])
    variances = space.from_numpy(np.array(outcome.variances))
    return PCA(space.from_numpy(components), variances, array(outcome.ratios),
               array(outcome.singular_values), array(outcome.mean), outcome.noise_variance,
               outcome.error, found)


def svds(A: Any, k: int = 6, ncv: int | None = None, tol: float = 0, which: str = "LM",
         maxiter: int | None = None, return_singular_vectors: bool | str = True, *,
         max_seconds: float = 0, device: Any = None, stream: Any = None, comm: Any = None,
         full_output: bool = False, on_unverified: str = "raise") -> Any:
    """The k largest or smallest singular triplets of a large matrix, every copy verified.

    Parameters
    ----------
    A : sparse matrix, SparseMatrix or array, (n, m)
        Square or rectangular. A sparse matrix is of scipy, cupyx or torch. An array whose rows or
        columns are contiguous is not copied; with `comm` it has the rows of this rank. For a tall &
        skinny array `svd` is faster.
    k : int
        The number of triplets, 1 to min(n, m).
    ncv, maxiter, max_seconds : optional
        As in `eigsh`.
    tol : float
        A triplet has converged when the norm of (A v - s u, A^H u - s v) is at most tol ||A||. 0
        stands for 32 units of round-off.
    which : {'LM', 'SM'}
        The largest or the smallest.
    return_singular_vectors : bool or {'u', 'vh'}
        False: only s. 'u' and 'vh': only these vectors; the others are None.
    device, stream, comm : optional
        As in `SparseMatrix`; a `SparseMatrix` has them already. For an array as in `eigsh`.
    full_output : bool
        True: an `SVDSInfo` follows the results.
    on_unverified : {'raise', 'ignore'}
        The action if the solver has not converged or cannot verify that no copy is missing.

    Returns
    -------
    u : array, (n, k)
    s : array, (k,)
        Descending, also of the smallest ones.
    vh : array, (k, m)
        With `comm`, u has the rows of this rank, and vh the columns of its part of the rows of X;
        for an array, the m rows of X are distributed as evenly as possible.
    info : SVDSInfo
        Only with `full_output`.

    Raises
    ------
    RuntimeError
        If the solver has not converged; `on_unverified` 'ignore' returns what it has found.
    ValueError
        For an argument that is out of range, and NaN or infinity in A.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, quiver
    >>> A = sp.diags_array([1.0, 5.0, 3.0, 5.0], shape=(4, 6))
    >>> u, s, vh = quiver.svds(A, k=3)
    >>> s.round(9).tolist()
    [5.0, 5.0, 3.0]
    """
    if which not in ("LM", "SM"):
        raise ValueError(f"which={which!r} is not 'LM' or 'SM'")
    if return_singular_vectors not in (True, False, "u", "vh"):
        raise ValueError(f"return_singular_vectors={return_singular_vectors!r} is not True, False, "
                         "'u' or 'vh'")
    if on_unverified not in ("raise", "ignore"):
        raise ValueError(f"on_unverified={on_unverified!r} is not 'raise' or 'ignore'")
    is_array = not isinstance(A, SparseMatrix) and library_name(A) != "" and sparse_source(A) is None
    if is_array:
        space, char, array = _matrix(A, "A", device, stream, comm)
        if not (space.has_block_layout(array) or space.has_block_layout(array.T)):
            array = space.contiguous(array)
    else:
        matrix = A if isinstance(A, SparseMatrix) else \
            SparseMatrix(A, device=device, stream=stream, comm=comm)
        space, char = matrix._space, matrix.dtype.char
    request = _core.SvdsRequest()
    request.k, request.smallest = whole_number(k, "k"), which == "SM"
    request.tol = number_from_zero(tol, "tol") or 32 * float(np.finfo(char).eps)
    request.max_basis = 0 if ncv is None else max(whole_number(ncv, "ncv"), whole_number(k, "k") + 12)
    request.max_iterations = 0 if maxiter is None else whole_number(maxiter, "maxiter")
    request.max_seconds = number_from_zero(max_seconds, "max_seconds")
    with space.entered():
        if is_array:
            outcome = _core.svds_dense(request, space.context, char, space.raw(array))
        else:
            outcome = _core.svds(request, matrix._operator, matrix.H._operator)
    if on_unverified == "raise" and not (outcome.converged and outcome.verified):
        raise RuntimeError(f"svds: {outcome.message or 'copies of a value may be missing'}; "
                           "on_unverified='ignore' returns the triplets that were found")
    values = space.from_numpy(np.array(outcome.values, dtype=real_scalar(char)))
    count = len(outcome.values)
    vectors: list[Any] = [None, None]
    left_rows, right_rows = (array.shape[0], outcome.right_rows) if is_array else \
        (matrix._rows[0], matrix._columns[0])
    for i, (name, rows, copy) in enumerate((("u", left_rows, outcome.copy_left),
                                            ("vh", right_rows, outcome.copy_right))):
        if return_singular_vectors in (True, name):
            vectors[i] = space.empty((rows, count), char)
            with space.entered():
                copy(space.raw(vectors[i]))
    result: tuple[Any, ...] = (values,)
    if return_singular_vectors:
        vh = None if vectors[1] is None else vectors[1].conj().T
        result = (vectors[0], values, vh)
    if full_output:
        result += (SVDSInfo(np.array(outcome.residuals), np.array(outcome.errors),
                            outcome.norm_estimate, outcome.converged, outcome.verified,
                            outcome.dense, outcome.iterations, outcome.products, outcome.seconds,
                            outcome.message),)
    return result if len(result) > 1 else result[0]
