# SPDX-License-Identifier: BSD-3-Clause
"""Eigenvalues of Hermitian matrices, with SciPy's interface."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple

import numpy as np

from . import _core
from ._arrays import Space, number_from_zero, real_scalar, space_of, sparse_source, whole_number
from ._operators import (LinearOperator, is_dense, is_stored, make_function, make_operator,
                         operand_space, problem_scalar, shape_of, sizes)

#: The methods that use no preconditioner.
_PLAIN_METHODS = ("lanczos", "chebyshev", "filter", "dense", "shift-invert")
#: With sigma, eigsh factorises no larger matrices itself; 'shift-invert' may, by MUMPS.
_MOST_FACTORISED_ROWS = 50000
#: Up to this many rows 'auto' solves a sparse matrix by 'dense', so that no factorisation is needed.
_DENSE_ROWS = 1024
_WHICH = {"LM": "largest-magnitude", "SM": "smallest-magnitude", "LA": "largest", "SA": "smallest",
          "BE": "both-ends"}
_LM, _SM, _LA, _SA, _BE = _WHICH


class Iteration(NamedTuple):
    """The argument of a callback, which a solver calls after each iteration."""

    iteration: int
    #: Pairs that have converged, and the number of wanted pairs: 0 with a window, which may hold any
    #: number. In linear solves, the columns of b that have stopped or whose residual is well below
    #: the tolerance, which may be fewer than all at the last event, and the number of columns.
    converged: int
    wanted: int
    #: The largest residual of the next wanted pairs, relative to the norm of A. In linear solves,
    #: the largest residual of the columns, each relative to the norm of its column of b.
    residual: float
    seconds: float
    #: 'search' or 'verify'; with a window also 'density'; in linear solves 'solve'.
    stage: str


@dataclass
class EigenInfo:
    """The outcome of a solve, the third result of ``eigsh(..., full_output=True)``."""

    #: ||A x - w M x|| / ||x|| of each pair, from a fresh product. With mode='buckling', residuals
    #: and norm_estimate are those of M x = u A x with u = 1 / w, the problem that is solved instead.
    residuals: np.ndarray
    #: Bounds of the errors of the eigenvalues, with M to first order in the residual. Empty for an
    #: interrupted solve with M.
    errors: np.ndarray
    #: An estimate of ||A||, and the tolerance of the solve relative to it.
    norm_estimate: float
    tolerance: float
    tolerance_raised: bool
    converged: bool
    #: True if a search has shown that no copy of a wanted eigenvalue is missing.
    verified: bool
    #: True if the wanted set ends inside a cluster, so that the choice of copies is arbitrary.
    cluster_cut: bool
    iterations: int
    #: Products with A, counted by column.
    operator_applications: int
    #: Silent faults that the checksums found (``abft``).
    faults: int
    seconds: float
    method: str
    method_reason: str
    message: str
    #: In `NoConvergence` and `Unverified` only: all pairs, also those that have not converged, in
    #: the order of `residuals`, as arrays of the caller's library.
    all_eigenvalues: Any = None
    all_eigenvectors: Any = None


class NoConvergence(_core.Error):
    """The solver gave up; `eigenvalues` and `eigenvectors` are the converged pairs.

    `info` has all pairs and their residuals. Where scipy.sparse.linalg is imported, the exception
    is also an ArpackNoConvergence.
    """

    def __init__(self, message: str, eigenvalues: Any, eigenvectors: Any, info: EigenInfo) -> None:
        RuntimeError.__init__(self, message)
        self.eigenvalues = eigenvalues
        self.eigenvectors = eigenvectors
        self.info = info

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        kind = Unverified if isinstance(self, Unverified) else NoConvergence
        return _exception, (kind, str(self), self.eigenvalues, self.eigenvectors, self.info)


class Unverified(NoConvergence):
    """All pairs have small residuals, but copies of eigenvalues may be missing."""


class UnverifiedWarning(RuntimeWarning):
    """The warning for an unverified result with ``on_unverified='warn'``."""


class AccuracyWarning(RuntimeWarning):
    """More than half of the eigenvalues are smaller than the bounds of their errors.

    No digit of them is certain, although their residuals are within the tolerance. Values that
    may be 0, because value and bound are rounding errors of ||A||, count only if several
    eigenvalues were found and none of them has a certain digit.
    """


def _exception(kind: type, *args: Any) -> Exception:
    """An exception of class `kind`, which is also an ArpackNoConvergence if SciPy is in use."""
    scipy = sys.modules.get("scipy.sparse.linalg")
    if scipy is None:
        return kind(*args)
    both = type(kind.__name__, (kind, scipy.ArpackNoConvergence), {"__module__": kind.__module__})
    return both(*args)


@dataclass
class _Problem:
    """The operators and options of one solve."""

    space: Space
    char: str
    #: Rows of this rank, and of all ranks.
    rows: int
    n: int
    a: Any
    b: Any
    preconditioner: Any
    inverse: Any
    start: Any
    constraints: Any
    callback: Any
    request: Any

    def solve(self, which: str, k: int, target: float = 0.0) -> Any:
        request = self.request
        request.which, request.k, request.target = which, k, target
        raw = self.space.raw
        with self.space.entered():
            return _core.eigensolve(
                self.space.context, request, self.a, self.b, self.preconditioner, self.inverse,
                None if self.start is None else raw(self.start),
                None if self.constraints is None else raw(self.constraints), self.callback)


def eigsh(A: Any, k: int = 6, M: Any = None, sigma: float | None = None, which: str = "LM",
          v0: Any = None, ncv: int | None = None, maxiter: int | None = None, tol: float = 0,
          return_eigenvectors: bool = True, Minv: Any = None, OPinv: Any = None,
          mode: str = "normal", *, method: str = "auto", block: int = 0, inner: str = "minres",
          preconditioner: Any = None, constraints: Any = None,
          window: tuple[float, float] | None = None, max_seconds: float = 0, abft: str = "off",
          comm: Any = None, device: Any = None, stream: Any = None,
          callback: Callable[[Iteration], Any] | str | None = None, full_output: bool = False,
          on_unverified: str = "raise", rng: Any = None) -> Any:
    """Find k eigenvalues and eigenvectors of A x = w M x with Hermitian A, every copy verified.

    The arguments before the star are those of `scipy.sparse.linalg.eigsh`, in the same order and
    with the same meaning. Eigenvalues always ascend.

    Parameters
    ----------
    A : matrix, operator or callable
        Hermitian, n x n: a sparse matrix of scipy, cupyx or torch in any format, a dense array,
        `quiver.SparseMatrix`, a LinearOperator of scipy or quiver, or a function ``f(X) -> Y`` or
        ``f(X, out)`` of n x b blocks (n is that of `v0` or `M`). A test raises ValueError if A is
        found not to be Hermitian.
    k : int
        Number of eigenvalues, 1 to n. Each copy of a multiple eigenvalue counts.
    M : as A, optional
        Hermitian positive definite.
    sigma : float, optional
        Eigenvalues near sigma. `which` then applies to 1 / (w - sigma). A sparse A up to 50,000
        rows is factorised, unless `OPinv` or `preconditioner` is given or the solve is dense.
    which : {'LM', 'SM', 'LA', 'SA', 'BE'}
        Largest or smallest magnitude, largest or smallest algebraically, or half from each end
        (one more from the high end if k is odd).
    v0 : array, (n,) or (n, b), optional
        Guesses of eigenvectors.
    ncv : int, optional
        Columns of the search basis; a value below the method's minimum is raised to it.
    maxiter : int, optional
        Block steps before the solver gives up; if not given, it goes on until they bring no
        progress.
    tol : float
        Pairs have converged when ``||A x - w M x|| <= tol ||A||`` (with M: ``tol (||A|| +
        |w| ||M||)``) for ``||x|| = 1``. 0 stands for the smallest attainable tolerance, 32 units of
        round-off.
    return_eigenvectors : bool
        If true, eigenvectors are returned as well.
    Minv : ignored
        M is not inverted.
    OPinv : matrix, operator or callable, optional
        The inverse of A - sigma M.
    mode : {'normal', 'buckling', 'cayley'}
        With sigma: `which` applies to 1 / (w - sigma), w / (w - sigma), (w + sigma) / (w - sigma).
    method : {'auto', 'lanczos', 'chebyshev', 'lobpcg', 'jd', 'filter', 'dense', 'shift-invert'}
        The algorithm. 'dense' computes all eigenvalues by LAPACK or cuSOLVER; 'auto' chooses it
        for small matrices (sparse matrices up to 1,024 rows, dense arrays up to 3,000, functions up
        to 512; half as many without LAPACK), for a large part of the spectrum up to 4,096 rows, and
        for sparse matrices up to 3,000 rows where an iteration stalls or a factorisation would cost
        more. 'shift-invert' factorises a sparse A.
    block : int
        Columns that a step multiplies at once; 0 lets the solver choose. 'dense' does not use it.
    inner : {'minres', 'cg', 'gmres', 'jdqmr'}
        The solver of the correction equations of 'jd'. 'cg' is for ends of the spectrum, 'gmres'
        for a preconditioner that is not positive definite.
    preconditioner : str, matrix, operator or callable, optional
        An approximation of the inverse of A (of A - sigma M), positive definite; for a sparse A
        also a name: 'jacobi', 'block-jacobi', 'chebyshev', 'ic', 'ilu', 'ldlt', with options as in
        'ldlt,shift=0.5'; no name with mode='buckling'.
    constraints : array, (n, c), optional
        Only eigenvectors orthogonal to these columns (in the inner product of M) are wanted.
    window : (float, float), optional
        All eigenvalues in this interval are wanted; `k` and `which` are ignored.
    max_seconds : float
        The solver ends after this time with the pairs found so far; 0 means no limit. A
        factorisation or a dense solve is not interrupted.
    abft : {'off', 'detect', 'correct'}
        Checksums against silent faults, for a sparse A.
    comm : optional
        A communicator of mpi4py, in builds with MPI. Each rank then passes its own rows of A, M
        and all vectors, consecutive in rank order; A and M have the columns of all ranks.
    device, stream : optional
        The device, 'cpu', 'cuda' or 'cuda:N', and a CUDA stream. If not given, the device is that
        of the arrays, and the stream is the caller's current one. A `SparseMatrix` and arrays on a
        GPU stay where they are: another device raises ValueError.
    callback : callable or 'progress', optional
        Called with an `Iteration` after each iteration. 'progress' shows a bar of tqdm on a
        terminal if tqdm is installed.
    full_output : bool
        If true, an `EigenInfo` is returned as well.
    on_unverified : {'raise', 'warn', 'ignore'}
        The action if all residuals are small, but copies of an eigenvalue may be missing.
    rng : ignored
        The random start vectors are the same in every call.

    Returns
    -------
    w : array, (k,)
        Eigenvalues, ascending.
    v : array, (n, k)
        Eigenvectors, orthonormal (in the inner product of M); column j belongs to ``w[j]``. Only
        with `return_eigenvectors`.
    info : EigenInfo
        Only with `full_output`.

    Raises
    ------
    NoConvergence, Unverified
        If the solver gave up, or could not verify that no copy is missing. The exception has the
        converged pairs and, where SciPy is in use, is also an ArpackNoConvergence.
    ValueError
        If an argument is invalid, or a matrix is not Hermitian.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, quiver
    >>> ring = sp.diags_array([-1.0, -1.0, 2.0, -1.0, -1.0], offsets=[-9, -1, 0, 1, 9],
    ...                       shape=(10, 10))
    >>> w, v = quiver.eigsh(ring, k=3, which='SA')
    >>> abs(w).round(6).tolist()
    [0.0, 0.381966, 0.381966]
    """
    _check_words(which, mode, on_unverified)
    _require_operand(A)
    space = operand_space(A, (v0, constraints), device, stream, comm)
    rows, n = sizes(space, ("A", A), ("M", M), vectors=(v0, constraints))
    k = whole_number(k, "k")
    tol, max_seconds = number_from_zero(tol, "tol"), number_from_zero(max_seconds, "max_seconds")
    if window is not None and np.shape(window) != (2,):
        raise ValueError(f"window={window!r}: a pair (low, high) is expected")
    named_none = isinstance(preconditioner, str) and preconditioner == "none"
    if preconditioner is not None and not named_none and method in _PLAIN_METHODS:
        raise ValueError(f"method={method!r} uses no preconditioner: choose 'lobpcg' or 'jd', or "
                         "omit the preconditioner")
    if inner != "minres" and method in (*_PLAIN_METHODS, "lobpcg"):
        raise ValueError(f"inner={inner!r}: method={method!r} solves no correction equations: "
                         "choose 'jd', or omit inner")
    if window is None and not 1 <= k <= n:
        raise ValueError(f"k={k}: at least 1 and at most n={n} eigenvalues can be found")
    if sigma is not None:
        sigma = _real_sigma(sigma)
        if window is not None:
            raise ValueError("sigma and window exclude each other: omit one of them")
    if mode != "normal" and sigma is None:
        raise ValueError(f"mode={mode!r} needs sigma")
    if mode == "cayley" and which == _SM:
        raise NotImplementedError("which='SM' with mode='cayley': use sigma=-sigma and 'LM'")
    if mode == "buckling":
        return _buckling(A, k, M, sigma, which, return_eigenvectors, full_output, OPinv,
                         preconditioner,
                         dict(v0=v0, ncv=ncv, maxiter=maxiter, max_seconds=max_seconds, tol=tol,
                              method=method, block=block, inner=inner, constraints=constraints,
                              abft=abft, comm=comm, device=device, stream=stream, callback=callback,
                              on_unverified=on_unverified))
    char = problem_scalar(A, M, v0 if shape_of(A) is None else None)
    request = _core.EigenRequest()
    request.method, request.block, request.abft = method, block, abft
    request.inner = inner
    request.tol = tol or float(np.finfo(char).eps)
    request.window = None if window is None else (float(window[0]), float(window[1]))
    request.max_seconds = max_seconds
    if maxiter is not None:
        if maxiter < 1:
            raise ValueError(f"maxiter={maxiter!r} must be at least 1")
        request.max_iterations = whole_number(maxiter, "maxiter")
    if ncv is not None and window is None:
        request.max_basis = min(n, max(whole_number(ncv, "ncv"), k + 3 * max(block or min(4, k), 2)))
    if sigma is not None and which == _SM:
        # 1 / (w - sigma) is smallest where |w - sigma| is largest.
        a, which = _shifted(A, M, sigma, rows, space, char), _LM
        shift, sigma = sigma, None
    else:
        a, shift = make_operator(A, rows, space, char, "A"), 0.0
    b = None if M is None else make_operator(M, rows, space, char, "M")
    problem = _Problem(space, char, rows, n, a, b, None, None, _start(space, v0, char, rows),
                       _block(space, constraints, char, rows, "constraints"), None, request)
    _set_inverse(problem, sigma, OPinv, preconditioner)
    with Progress(callback, "pair") as progress:
        problem.callback = progress
        if window is not None:
            outcome, chosen = problem.solve("smallest", 1), None
        elif sigma is None:
            outcome, chosen = problem.solve(_WHICH[which], k), None
        else:
            outcome, chosen = _near_sigma(problem, k, sigma, which, mode)
    return _deliver(problem, outcome, chosen, shift, k if window is None else None,
                    return_eigenvectors, full_output, on_unverified)


def _check_words(which: str, mode: str, on_unverified: str) -> None:
    for name, value, words in (("which", which, tuple(_WHICH)),
                               ("mode", mode, ("normal", "buckling", "cayley")),
                               ("on_unverified", on_unverified, ("raise", "warn", "ignore"))):
        if value not in words:
            raise ValueError(f"{name}={value!r} is not one of {', '.join(words)}")


def _real_sigma(sigma: Any) -> float:
    value = complex(sigma)
    if value.imag != 0:
        raise ValueError(f"sigma={sigma}: the eigenvalues of a Hermitian matrix are real, so sigma "
                         "must be real")
    if not np.isfinite(value.real):
        raise ValueError(f"sigma={sigma} is not finite")
    return value.real


def _require_operand(a: Any) -> None:
    if shape_of(a) is None and not callable(a):
        raise TypeError(f"A: a matrix, an operator or a function is expected, not "
                        f"{type(a).__name__}")


def _block(space: Space, x: Any, char: str, n: int, name: str) -> Any:
    return None if x is None else space.block(x, char, name, rows=n)


def _start(space: Space, v0: Any, char: str, n: int) -> Any:
    """Returns v0 as a block; raises ValueError for entries that are not finite."""
    start = _block(space, v0, char, n, "v0")
    if start is not None and not bool(space.module().isfinite(start).all()):
        raise ValueError("v0 has entries that are not finite")
    return start


def _shifted(a: Any, m: Any, sigma: float, n: int, space: Space, char: str) -> Any:
    """The operator A - sigma M."""
    if space.comm is None and sparse_source(a) == "scipy" and (m is None or sparse_source(m) == "scipy"):
        import scipy.sparse

        shifted = a - sigma * (scipy.sparse.eye_array(n, format="csr") if m is None else m)
        return make_operator(shifted, n, space, char, "A")
    op_a = make_operator(a, n, space, char, "A")
    op_m = None if m is None else make_operator(m, n, space, char, "M")

    def apply(op: Any, x: Any) -> Any:
        y = space.empty(tuple(x.shape), char)
        _core.apply(space.context, op, space.raw(x), space.raw(y))
        return y

    def product(x: Any) -> Any:
        return apply(op_a, x) - sigma * (x if op_m is None else apply(op_m, x))

    operands = [x for x in (a, m) if x is not None]
    dense = any(map(is_dense, operands)) and all(map(is_stored, operands))
    return make_function(product, n, space, char, "A", dense)


def _set_inverse(problem: _Problem, sigma: float | None, op_inv: Any, preconditioner: Any) -> None:
    """Sets problem.inverse, the inverse of A - sigma M, or problem.preconditioner, or neither."""
    make = lambda x, name: make_operator(x, problem.rows, problem.space, problem.char, name)  # noqa: E731
    if op_inv is not None and sigma is not None:
        problem.inverse = make(op_inv, "OPinv")
    elif isinstance(preconditioner, str):
        if preconditioner == "none":
            return
        if not problem.a.is_sparse:
            raise ValueError("preconditioner: a name needs the entries of A; pass a sparse matrix")
        if problem.b is not None and not problem.b.is_sparse:
            raise ValueError("preconditioner: a name needs the entries of M; pass a sparse matrix")
        problem.preconditioner = _core.make_preconditioner(problem.a, preconditioner, None,
                                                           problem.b)
    elif preconditioner is not None:
        problem.preconditioner = make(preconditioner, "preconditioner")
    elif (sigma is not None and not _is_dense(problem) and problem.a.is_sparse
          and problem.n <= _MOST_FACTORISED_ROWS
          # shift-invert factorises by itself, and `auto` takes it for a pencil, because it counts
          # the eigenvalues.
          and problem.request.method != "shift-invert"
          and not (problem.request.method == "auto" and problem.b is not None)
          and (problem.b is None or problem.b.is_sparse)):
        problem.inverse = _core.make_preconditioner(problem.a, "ldlt", sigma, problem.b)


def _is_dense(problem: _Problem) -> bool:
    request = problem.request
    small = problem.n <= _DENSE_ROWS and request.abft == "off"
    return bool(request.method == "dense" or (request.method == "auto" and small))


def _near_sigma(problem: _Problem, k: int, sigma: float, which: str,
                mode: str) -> tuple[Any, np.ndarray]:
    """The k eigenvalues that `which` selects by 1 / (w - sigma) (mode cayley: (w + sigma) / (w -
    sigma)). Computes the eigenvalues nearest to sigma, then twice as many (all after a dense
    solve), until no other eigenvalue can be among the selected ones. Returns the outcome and the
    selected indices."""
    wanted = k
    while True:
        outcome = problem.solve("target", wanted, sigma)
        w = np.array(outcome.eigenvalues)
        if not outcome.converged or len(w) < wanted:
            return outcome, np.arange(len(w))
        distance = w - sigma
        # The value of a pair at sigma itself is infinite; the positive sign is arbitrary.
        smallest = np.finfo(float).tiny
        inverse = 1 / np.where(np.abs(distance) < smallest, smallest, distance)
        value = inverse if mode == "normal" else 1 + 2 * sigma * inverse
        edge = 1 / max(np.abs(distance).max(), smallest)
        # Pairs that were not found have |1 / (w - sigma)| <= edge.
        if mode == "normal":
            low, high = -edge, edge
        else:
            low, high = 1 - 2 * abs(sigma) * edge, 1 + 2 * abs(sigma) * edge
        chosen = _select(value, k, which)
        if chosen is not None and (wanted == problem.n or _is_complete(value, chosen, which, k,
                                                                       low, high)):
            return outcome, np.sort(chosen)
        # A second dense solve finds the whole spectrum; several would cost more.
        wanted = problem.n if outcome.method == "dense" else min(problem.n, 2 * wanted)


def _select(value: np.ndarray, k: int, which: str) -> np.ndarray | None:
    order = np.argsort(value, kind="stable")
    if len(value) < k:
        return None
    if which == _LA:
        return order[len(value) - k:]
    if which == _SA:
        return order[:k]
    if which == _BE:
        return np.concatenate([order[:k // 2], order[len(value) - (k - k // 2):]])
    return np.argsort(-np.abs(value), kind="stable")[:k]


def _is_complete(value: np.ndarray, chosen: np.ndarray, which: str, k: int, low: float,
                 high: float) -> bool:
    """True if no pair that was not computed can be among the selected: its value lies between low
    and high."""
    # A bound of the rounding error of low and high.
    slack = 1e-12 * max(abs(low), abs(high))
    picked = value[chosen]
    if which == _LA:
        return bool(picked.min() >= high - slack)
    if which == _SA:
        return bool(picked.max() <= low + slack)
    if which == _BE:
        few = k // 2
        return bool((few == 0 or picked[:few].max() <= low + slack)
                    and picked[few:].min() >= high - slack)
    return bool(np.abs(picked).min() >= max(abs(low), abs(high)) - slack)


def _buckling(a: Any, k: int, m: Any, sigma: float | None, which: str, return_eigenvectors: bool,
              full_output: bool, op_inv: Any, preconditioner: Any, options: dict[str, Any]) -> Any:
    """Solves A x = w M x with positive definite A and any M as s M x = u A x with u = s / w, where
    s = -1 for positive sigma, else 1. Then w / (w - sigma) = 1 / |sigma| / (u - s / sigma), and
    s M - (s / sigma) A = (A - sigma M) / |sigma|."""
    if m is None or not sigma:
        raise ValueError("mode='buckling' needs M and a sigma that is not 0")
    if not hasattr(m, "__neg__"):
        raise TypeError("mode='buckling': M must be a matrix or a LinearOperator of SciPy")
    if isinstance(preconditioner, str) and preconditioner != "none":
        raise ValueError(f"preconditioner={preconditioner!r}: mode='buckling' takes no name; give the "
                         "inverse of A - sigma M as OPinv, or an operator that approximates it as "
                         "preconditioner")
    options["OPinv"] = _multiple(op_inv, abs(sigma), "OPinv", a, m, options)
    options["preconditioner"] = _multiple(preconditioner, abs(sigma), "preconditioner", a, m,
                                          options)
    sign = -1.0 if sigma > 0 else 1.0
    stream = options["stream"]
    try:
        u, x, info = eigsh(-m if sigma > 0 else m, k, M=a, sigma=sign / sigma, which=which,
                           full_output=True, **options)
    except NoConvergence as error:
        error.eigenvalues, error.eigenvectors, _ = _buckled(sign, error.eigenvalues,
                                                            error.eigenvectors, stream)
        _buckle_info(sign, error.info, stream)
        raise
    w, x, order = _buckled(sign, u, x, stream)
    results = [w]
    if return_eigenvectors:
        results.append(x)
    if full_output:
        if info.all_eigenvalues is None:
            _convert_bounds(sign, info, u, order, stream)
        else:
            _buckle_info(sign, info, stream)
        results.append(info)
    return results[0] if len(results) == 1 else tuple(results)


def _multiple(op: Any, factor: float, name: str, a: Any, m: Any, options: dict[str, Any]) -> Any:
    """`factor` times an operator of the problem of _buckling(); strings and None as they are."""
    if op is None or isinstance(op, str):
        return op
    space = operand_space(m, (options["v0"], options["constraints"]), options["device"],
                          options["stream"], options["comm"])
    rows, n = sizes(space, ("M", m), ("A", a))
    char = problem_scalar(m, a)
    product = make_operator(op, rows, space, char, name)

    def apply(x: Any) -> Any:
        y = space.empty(tuple(x.shape), char)
        _core.apply(space.context, product, space.raw(x), space.raw(y))
        y *= factor
        return y

    return LinearOperator((rows, n), apply, dtype=np.dtype(char))


def _buckled(sign: float, u: Any, x: Any, stream: Any) -> tuple[Any, Any, np.ndarray]:
    """w = s / u ascending, the vectors in this order, and the order."""
    space = space_of(u, stream=stream)
    with space.entered(), np.errstate(divide="ignore"):  # u = 0 stands for an infinite w
        order = np.argsort(sign / space.numpy(u), kind="stable")
        index = space.from_numpy(order)
        return sign / u[index], x[:, index], order


def _buckle_info(sign: float, info: EigenInfo, stream: Any) -> None:
    """Converts the pairs of a result that has not converged."""
    u = info.all_eigenvalues
    info.all_eigenvalues, info.all_eigenvectors, order = _buckled(sign, u, info.all_eigenvectors,
                                                                  stream)
    _convert_bounds(sign, info, u, order, stream)


def _convert_bounds(sign: float, info: EigenInfo, u: Any, order: np.ndarray, stream: Any) -> None:
    """Reorders residuals, and converts bounds of the errors of u to those of w = s / u."""
    info.residuals = info.residuals[order]
    if len(info.errors) > 0:
        space = space_of(u, stream=stream)
        with space.entered(), np.errstate(divide="ignore", invalid="ignore"):
            values = np.abs(space.numpy(u)[order])
            # |1/u - 1/(u +- e)| <= e / (|u| (|u| - e)); infinite if the interval contains 0.
            rest = np.maximum(values - info.errors[order], 0)
            info.errors = info.errors[order] / (values * rest)


def _warn_of_lost_digits(values: np.ndarray, info: EigenInfo, char: str,
                         has_mass: bool) -> None:
    """Warns if more than half of the eigenvalues have no certain digit (see AccuracyWarning)."""
    if len(info.errors) != len(values) or len(values) == 0:
        return
    size = np.abs(values)
    rounding = 256 * float(np.finfo(real_scalar(char)).eps) * info.norm_estimate
    may_be_zero = (size <= rounding) & (info.errors <= rounding)
    if has_mass:  # its bounds also depend on the condition of M
        may_be_zero |= info.residuals <= rounding
    uncertain = info.errors >= size
    if len(values) == 1 or not uncertain.all():
        uncertain &= ~may_be_zero
    count = int(np.count_nonzero(uncertain))
    if 2 * count > len(values):
        cure = ("; a smaller tol may give more" if not info.tolerance_raised else
                "" if info.method in ("dense", "shift-invert") else
                "; method='shift-invert' may give more")
        warnings.warn(f"{count} of {len(values)} eigenvalues are smaller than the bounds of their "
                      f"errors, up to {info.errors.max():.2g}, so that no digit of them is "
                      f"certain{cure}", AccuracyWarning, stacklevel=4)


def _deliver(problem: _Problem, outcome: Any, chosen: np.ndarray | None, shift: float,
             k: int | None, return_eigenvectors: bool, full_output: bool,
             on_unverified: str) -> Any:
    """Returns the result as arrays of the caller's library, or raises an exception with them."""
    space, char = problem.space, problem.char
    values = np.array(outcome.eigenvalues) + shift
    residuals = np.array(outcome.residuals)
    errors = np.array(outcome.errors)
    limit = outcome.tolerance * outcome.norm_estimate
    small = (k is None or len(values) >= k) and bool(np.all(residuals <= limit))
    complete = outcome.converged
    vectors: Any = None
    if return_eigenvectors or not complete:
        with space.entered():
            vectors = space.empty((problem.rows, len(values)), char)
            if len(values) > 0:
                outcome.copy_vectors(space.raw(vectors))
    if chosen is not None and len(chosen) < len(values):
        values, residuals = values[chosen], residuals[chosen]
        errors = errors[chosen] if len(errors) > 0 else errors
        if vectors is not None:
            vectors = vectors[:, space.from_numpy(chosen)]
    with space.entered():
        w = space.from_numpy(values.astype(real_scalar(char)))
    info = EigenInfo(residuals, errors, outcome.norm_estimate, outcome.tolerance,
                     outcome.tolerance_raised, outcome.converged, outcome.verified,
                     outcome.cluster_cut, outcome.iterations, outcome.operator_applications,
                     outcome.faults, outcome.seconds, outcome.method, outcome.method_reason,
                     outcome.message)
    if not complete:
        message = outcome.message or "the solver has not converged"
        is_factorised = problem.n <= _MOST_FACTORISED_ROWS and problem.a.is_sparse
        if (chosen is not None and not _is_dense(problem) and not is_factorised
                and problem.inverse is None and problem.preconditioner is None
                and outcome.method != "shift-invert"):
            message += (f"; A - sigma M was not factorised (with more than {_MOST_FACTORISED_ROWS:,} "
                        "rows or without stored entries): give its inverse as OPinv, or a "
                        "preconditioner=")
        good = space.from_numpy(np.flatnonzero(residuals <= limit))
        info.all_eigenvalues, info.all_eigenvectors = w, vectors
        unverified = small and not outcome.verified and not outcome.interrupted
        if not unverified:
            raise _exception(NoConvergence, f"no convergence: {message}", w[good],
                             vectors[:, good], info)
        if on_unverified == "raise":
            raise _exception(Unverified, f"not verified: {message}", w[good], vectors[:, good],
                             info)
        if on_unverified == "warn":
            warnings.warn(f"not verified: {message}", UnverifiedWarning, stacklevel=3)
    else:
        _warn_of_lost_digits(values, info, char, problem.b is not None)
    results = [w]
    if return_eigenvectors:
        results.append(vectors)
    if full_output:
        results.append(info)
    return results[0] if len(results) == 1 else tuple(results)


class Progress:
    """Adapts a callback for the extension module, and shows the bar of 'progress'."""

    def __init__(self, callback: Any, unit: str) -> None:
        self._callback = callback
        self._unit = unit
        self._bar: Any = None
        if isinstance(callback, str):
            if callback != "progress":
                raise ValueError(f"callback={callback!r}: a function or 'progress' is expected")
            self._callback = self._show
        elif callback is not None and not callable(callback):
            raise TypeError("callback: a function or 'progress' is expected")

    def __enter__(self) -> Any:
        if self._callback is None:
            return None
        if self._callback == self._show and sys.stderr.isatty():
            try:
                from tqdm import tqdm

                self._bar = tqdm(unit=self._unit, leave=False)
            except ImportError:
                pass
        return lambda *values: self._callback(Iteration(*values))

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()

    def _show(self, event: Iteration) -> None:
        if self._bar is None:
            return
        self._bar.total = event.wanted or None
        self._bar.n = event.converged
        self._bar.set_postfix_str(f"{event.stage}, residual {event.residual:.1e}", refresh=False)
        self._bar.refresh()
