# SPDX-License-Identifier: BSD-3-Clause
"""Products of tall & skinny blocks, QR, sparse products, and batches of small matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._arrays import (Space, dtype_of, library_name, ready_arrays, scalar_of, space_of,
                      sparse_source)
from ._operators import make_product, operand_space, problem_scalar


def _prepare(stream: Any, *arrays: Any) -> tuple[Space, str, bool]:
    """The space and the scalar of a product of these arrays, and True if Space.array() would return
    each of them unchanged."""
    found = ready_arrays(*arrays) if stream is None else None
    if found is not None:
        return *found, True
    given = [x for x in arrays if x is not None]
    dtypes = []
    for x in given:
        if type(x) is np.ndarray:
            dtypes.append(x.dtype)
        elif sparse_source(x) is not None:
            raise TypeError("a sparse matrix is not a block: pass an array (A.toarray()); "
                            "quiver.spmm(A, X) multiplies a square sparse A by a block X")
        else:
            dtypes.append(dtype_of(x) if library_name(x) else np.asarray(x).dtype)
    return space_of(*given, stream=stream), scalar_of(*dtypes), False


def _matrix(space: Space, x: Any, char: str, name: str, ready: bool) -> Any:
    x = space.with_block_layout(x if ready else space.array(x, char, name), name)
    if x.ndim != 2:
        raise ValueError(f"{name} has one dimension; a matrix is expected (x[:, None])")
    return x


def _accumulator(space: Space, beta: complex, out: Any, shape: tuple[int, int], char: str,
                 name: str) -> Any:
    if beta != 0 and out is None:
        raise ValueError(f"beta={beta} adds to {name}, which is not given")
    return space.output(out, shape, char, name)


def _factor(value: complex, char: str, name: str) -> complex:
    if type(value) is float:
        return value
    if complex(value).imag != 0 and char in "fd":
        raise ValueError(f"{name}={value} is complex, but the arrays are real")
    return complex(value)


def tsmttsm(A: Any, B: Any, alpha: complex = 1.0, beta: complex = 0.0, out: Any = None, *,
            stream: Any = None) -> Any:
    """C = alpha A^H B + beta C for tall & skinny A (n x k) and B (n x l).

    Parameters
    ----------
    A, B : array, (n, k) and (n, l)
        Arrays of one library on one device. Arrays with contiguous rows are not copied.
    alpha, beta : scalar
        Factors. If beta is not 0, `out` holds C.
    out : array, (k, l), optional
        The result; a new array of the same library if not given.
    stream : optional
        A CUDA stream; the caller's current one if not given.

    Returns
    -------
    C : array, (k, l)

    Examples
    --------
    >>> import numpy as np, quiver
    >>> A = np.arange(6.0).reshape(3, 2)
    >>> quiver.tsmttsm(A, A).tolist()
    [[20.0, 26.0], [26.0, 35.0]]
    """
    space, char, ready = _prepare(stream, A, B, out)
    a = _matrix(space, A, char, "A", ready)
    b = a if B is A else _matrix(space, B, char, "B", ready)
    (rows, k), (rows_b, l) = a.shape, b.shape
    if rows != rows_b:
        raise ValueError(f"A has {rows} rows, B has {rows_b}")
    c = _accumulator(space, beta, out, (k, l), char, "out")
    raw_a, raw_b, raw_c = space.raws(a, b, c)
    _core.tsmttsm(space.context, _factor(alpha, char, "alpha"), raw_a, raw_b,
                  _factor(beta, char, "beta"), raw_c)
    return c


def gram(A: Any, out: Any = None, *, stream: Any = None) -> Any:
    """The Gram matrix A^H A.

    Parameters
    ----------
    A : array, (n, k)
    out, stream : optional
        As in `tsmttsm`.

    Returns
    -------
    G : array, (k, k)

    Examples
    --------
    >>> import numpy as np, quiver
    >>> quiver.gram(np.ones((4, 2))).tolist()
    [[4.0, 4.0], [4.0, 4.0]]
    """
    return tsmttsm(A, A, out=out, stream=stream)


def tsmm(X: Any, C: Any, alpha: complex = 1.0, beta: complex = 0.0, out: Any = None, *,
         stream: Any = None) -> Any:
    """Y = alpha X C + beta Y for a tall & skinny X (n x k) and a small C (k x l).

    Parameters
    ----------
    X, C : array, (n, k) and (k, l)
    alpha, beta : scalar
        Factors. If beta is not 0, `out` holds Y.
    out : array, (n, l), optional
        The result; a new array if not given. With `out=X` the product is formed in place.
    stream : optional
        As in `tsmttsm`.

    Returns
    -------
    Y : array, (n, l)

    Examples
    --------
    >>> import numpy as np, quiver
    >>> quiver.tsmm(np.ones((3, 2)), np.array([[1.0], [2.0]])).tolist()
    [[3.0], [3.0], [3.0]]
    """
    space, char, ready = _prepare(stream, X, C, out)
    x, c = _matrix(space, X, char, "X", ready), _matrix(space, C, char, "C", ready)
    (n, k), (rows, l) = x.shape, c.shape
    if k != rows:
        raise ValueError(f"X has {k} columns, C has {rows} rows")
    y = _accumulator(space, beta, out, (n, l), char, "out")
    raw_x, raw_c, raw_y = space.raws(x, c, y)
    _core.tsmm(space.context, _factor(alpha, char, "alpha"), raw_x, raw_c,
               _factor(beta, char, "beta"), raw_y)
    return y


def tsmm_gram(V: Any, H: Any, alpha: complex = 1.0, beta: complex = 0.0, out: Any = None, *,
              stream: Any = None) -> tuple[Any, Any]:
    """W = alpha V H + beta W, then G = W^H W, in one pass over V and W.

    Parameters
    ----------
    V, H : array, (n, k) and (k, l)
    alpha, beta : scalar
        Factors. If beta is not 0, `out` holds W.
    out, stream : optional
        As in `tsmm`.

    Returns
    -------
    W : array, (n, l)
    G : array, (l, l)

    Examples
    --------
    >>> import numpy as np, quiver
    >>> W, G = quiver.tsmm_gram(np.ones((3, 2)), np.array([[1.0], [2.0]]))
    >>> G.tolist()
    [[27.0]]
    """
    space, char, ready = _prepare(stream, V, H, out)
    v, h = _matrix(space, V, char, "V", ready), _matrix(space, H, char, "H", ready)
    (n, k), (rows, l) = v.shape, h.shape
    if k != rows:
        raise ValueError(f"V has {k} columns, H has {rows} rows")
    w = _accumulator(space, beta, out, (n, l), char, "out")
    g = space.empty((l, l), char)
    raw_v, raw_h, raw_w, raw_g = space.raws(v, h, w, g)
    _core.tsmm_gram(space.context, _factor(alpha, char, "alpha"), raw_v, raw_h,
                    _factor(beta, char, "beta"), raw_w, raw_g)
    return w, g


class QR(NamedTuple):
    """The factors of `qr`."""

    Q: Any
    R: Any


def qr(A: Any, *, stream: Any = None) -> QR:
    """A = Q R with orthonormal columns of Q (n x k) and upper triangular R, for n >= k.

    The method is Cholesky-QR, applied twice, or TSQR if A is too ill-conditioned for Cholesky-QR.
    Diagonal elements of R may have any sign.

    Parameters
    ----------
    A : array, (n, k)
    stream : optional
        As in `tsmttsm`.

    Returns
    -------
    Q : array, (n, k)
    R : array, (k, k)

    Examples
    --------
    >>> import numpy as np, quiver
    >>> A = np.array([[3.0, 1.0], [4.0, 2.0], [0.0, 5.0]])
    >>> Q, R = quiver.qr(A)
    >>> bool(np.allclose(Q @ R, A)), bool(np.allclose(Q.T @ Q, np.eye(2)))
    (True, True)
    """
    space, char, ready = _prepare(stream, A)
    a = _matrix(space, A, char, "A", ready)
    n, k = a.shape
    if k > n:
        raise ValueError(f"A has {n} rows and {k} columns; at least as many rows are needed")
    q = space.empty((n, k), char)
    r = np.zeros((k, k), dtype=char)
    if k > 0:
        _core.qr(space.context, space.raw(a), space.raw(q), r)
    return QR(q, space.from_numpy(r))


def spmm(A: Any, X: Any, out: Any = None, *, stream: Any = None) -> Any:
    """Y = A X for a sparse matrix A and a block (or vector) X.

    Parameters
    ----------
    A : matrix or operator
        As in `eigsh`, but not necessarily Hermitian; a sparse matrix need not be square. A
        `SparseMatrix` is set up once, other matrices in each call. For A^H X, pass A.H of a
        `SparseMatrix`.
    X : array, (n, b) or (n,), for a matrix with n columns
    out : array of the shape of Y, optional
    stream : optional
        As in `tsmttsm`.

    Returns
    -------
    Y : array, (m, b) or (m,), for a matrix with m rows

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, quiver
    >>> quiver.spmm(sp.diags_array([1.0, 2.0]), np.ones(2)).tolist()
    [1.0, 2.0]
    """
    space = operand_space(A, (X,), None, stream)
    char = problem_scalar(A, X)
    a, rows, columns = make_product(A, space, char, "A", X)
    x = space.block(X, char, "X", rows=columns)
    y = space.output(out, (rows, *x.shape[1:]), char, "out")
    with space.entered():
        _core.apply(space.context, a, space.raw(x), space.raw(y))
    return y


class BatchedLU(NamedTuple):
    """The factors of `lu`: P A = L U for every matrix."""

    #: U, and below its diagonal the multipliers of L.
    factors: Any
    #: Row j was exchanged with row pivots[b, j].
    pivots: Any
    #: 0 for a regular matrix; otherwise j + 1 for the first column j without a nonzero pivot.
    status: Any


def _batch(space: Space, x: Any, char: str, name: str) -> Any:
    """A contiguous copy of a batch of matrices."""
    x = space.array(x, char, name)
    if x.ndim != 3:
        raise ValueError(f"{name} has {x.ndim} dimensions; (count, rows, columns) are expected")
    out = space.empty(tuple(x.shape), char)
    out[...] = x
    return out


def _square_batch(space: Space, x: Any, char: str, largest: int) -> Any:
    out = _batch(space, x, char, "A")
    if out.shape[1] != out.shape[2] or not 1 <= out.shape[1] <= largest:
        raise ValueError(f"A has shape {tuple(out.shape)}: square matrices of order 1 to {largest} "
                         "are expected")
    return out


def lu(A: Any, *, stream: Any = None) -> BatchedLU:
    """P A = L U with partial pivoting for many small matrices.

    Parameters
    ----------
    A : array, (count, n, n)
        n from 1 to 64.
    stream : optional
        As in `tsmttsm`.

    Returns
    -------
    factors, pivots, status : arrays, (count, n, n), (count, n), (count,)

    Examples
    --------
    >>> import numpy as np, quiver
    >>> factors, pivots, status = quiver.lu(np.array([[[0.0, 2.0], [4.0, 1.0]]]))
    >>> factors.tolist(), pivots.tolist(), status.tolist()
    ([[[4.0, 1.0], [0.0, 2.0]]], [[1, 1]], [0])
    """
    space, char, _ = _prepare(stream, A)
    factors = _square_batch(space, A, char, 64)
    pivots = space.zeros(tuple(factors.shape[:2]), "i")
    status = space.zeros((factors.shape[0],), "i")
    if factors.shape[0] > 0:
        _core.lu_factor(space.context, space.raw(factors), space.raw(pivots), space.raw(status))
    return BatchedLU(factors, pivots, status)


def cholesky(A: Any, *, stream: Any = None) -> Any:
    """A = L L^H for many small Hermitian positive definite matrices; the lower triangles are read.

    Parameters
    ----------
    A : array, (count, n, n)
        n from 1 to 512.
    stream : optional
        As in `tsmttsm`.

    Returns
    -------
    L : array, (count, n, n)
        Lower triangular.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite.

    Examples
    --------
    >>> import numpy as np, quiver
    >>> quiver.cholesky(np.array([[[4.0, 2.0], [2.0, 10.0]]])).tolist()
    [[[2.0, 0.0], [1.0, 3.0]]]
    """
    space, char, _ = _prepare(stream, A)
    factor = _square_batch(space, A, char, 512)
    status = space.zeros((factor.shape[0],), "i")
    if factor.shape[0] > 0:
        _core.cholesky_factor(space.context, space.raw(factor), space.raw(status))
    _require_regular(space, status, "is not positive definite")
    return space.module().tril(factor)


def solve(A: Any, B: Any, *, assume_a: str = "general", stream: Any = None) -> Any:
    """X = A^-1 B for many small matrices.

    Parameters
    ----------
    A : array, (count, n, n)
        n from 1 to 64; with `assume_a='pos'` 1 to 512.
    B : array, (count, n) or (count, n, m)
    assume_a : {'general', 'pos'}
        'general': LU factors. 'pos': A is Hermitian positive definite; Cholesky factors.
    stream : optional
        As in `tsmttsm`.

    Returns
    -------
    X : array of B's shape

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular, or not positive definite.

    Examples
    --------
    >>> import numpy as np, quiver
    >>> quiver.solve(np.array([[[2.0, 0.0], [0.0, 4.0]]]), np.array([[2.0, 2.0]])).tolist()
    [[1.0, 0.5]]
    """
    if assume_a not in ("general", "pos"):
        raise ValueError(f"assume_a={assume_a!r} is not one of general, pos")
    space, char, _ = _prepare(stream, A, B)
    b = space.array(B, char, "B")
    vectors = b.ndim == 2
    x = _batch(space, b[:, :, None] if vectors else b, char, "B")
    factors = _square_batch(space, A, char, 64 if assume_a == "general" else 512)
    if tuple(x.shape[:2]) != tuple(factors.shape[:2]):
        raise ValueError(f"A has shape {tuple(factors.shape)}, B has shape {tuple(b.shape)}")
    raw = space.raw
    status = space.zeros((factors.shape[0],), "i")
    if factors.shape[0] > 0 and x.shape[2] > 0:
        if assume_a == "pos":
            _core.cholesky_factor(space.context, raw(factors), raw(status))
            _require_regular(space, status, "is not positive definite")
            _core.cholesky_solve(space.context, raw(factors), raw(x))
        else:
            pivots = space.zeros(tuple(factors.shape[:2]), "i")
            _core.lu_factor(space.context, raw(factors), raw(pivots), raw(status))
            _require_regular(space, status, "is singular")
            _core.lu_solve(space.context, raw(factors), raw(pivots), raw(x))
    return x[:, :, 0] if vectors else x


def _require_regular(space: Space, status: Any, what: str) -> None:
    failed = np.flatnonzero(space.numpy(status))
    if len(failed) > 0:
        raise np.linalg.LinAlgError(f"matrix {failed[0]} of the batch {what} ({len(failed)} of "
                                    f"{len(space.numpy(status))})")
