# SPDX-License-Identifier: BSD-3-Clause
"""Linear systems with many right-hand sides, with SciPy's interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core
from ._arrays import Space, number_from_zero
from ._eigen import Progress
from ._operators import make_operator, operand_space, problem_scalar, shape_of, sizes


@dataclass
class LinearInfo:
    """The outcome of a solve, the third result with ``full_output=True``."""

    converged: bool
    #: Steps of the block; each column's own steps are in `column_iterations`.
    iterations: int
    #: Products with A, counted by column.
    operator_applications: int
    seconds: float
    #: The message of the first column that has not converged.
    message: str
    #: Of each column: ||b - A x|| from a fresh product, and ||b||.
    residuals: np.ndarray
    b_norms: np.ndarray
    column_iterations: np.ndarray
    #: Of each column: 'converged', 'out of iterations', 'stagnated', 'breakdown' or 'not finite';
    #: and the reason if the column has not converged.
    statuses: list[str]
    messages: list[str]


_SHARED = """
    Parameters
    ----------
    A : matrix, operator or callable
        n x n, as in `eigsh`{matrix}.
    b : array, (n,) or (n, m)
        One or many right-hand sides.
    x0 : array of b's shape, optional
        A first guess.
    rtol, atol : float
        Column j has converged when ``||b_j - A x_j|| <= max(rtol ||b_j||, atol)``.
{extra}    maxiter : int, optional
        {maxiter}
    M : str, matrix, operator or callable, optional
        A preconditioner that approximates the inverse of A{preconditioner}; for a sparse A also a
        name: 'jacobi', 'block-jacobi', 'chebyshev', 'ic', 'ilu', 'ldlt'.
    callback : callable or 'progress', optional
        Called with an `Iteration` after each step of the block; the callbacks of SciPy get the
        iterate or the residual instead. 'progress' shows a bar, as in `eigsh`.{callback_type}
    device, stream, comm : optional
        As in `eigsh`.
    full_output : bool
        If true, a `LinearInfo` with the residual, status and message of each column is returned as
        well.

    Returns
    -------
    x : array of b's shape
    info : int
        0 if all columns have converged; -1 if a column ended with a breakdown or with numbers that
        are not finite; otherwise the number of steps (also for gmres, not of restarts).
    details : LinearInfo
        Only with ``full_output=True``.

    Raises
    ------
    ValueError
        If b or x0 has entries that are not finite, among other invalid arguments.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, quiver
    >>> A = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(50, 50)).tocsr()
    >>> B = np.ones((50, 3))
    >>> X, info = quiver.{name}(A, B, rtol=1e-10)
    >>> info, bool(np.allclose(A @ X, B))
    (0, True)
    """


def _tolerances(space: Space, b: Any, rtol: float, atol: float) -> list[float]:
    """The relative tolerance of each column; rtol for a zero column, which converges at once."""
    rtol, atol = number_from_zero(rtol, "rtol"), number_from_zero(atol, "atol")
    norms = np.sqrt(space.sum((np.abs(space.numpy(b)) ** 2).sum(axis=0))) if atol > 0 else None
    columns = b.shape[1]
    if norms is None:
        return [rtol] * columns
    return [float(max(rtol, atol / norm)) if norm > 0 else rtol for norm in norms]


def _solve(method: str, A: Any, b: Any, x0: Any, rtol: float, atol: float, steps: int, M: Any,
           callback: Any, device: Any, stream: Any, comm: Any, restart: int = 30,
           shift: float = 0.0, full_output: bool = False) -> Any:
    if isinstance(b, (list, tuple)):
        b = np.asarray(b)
    space = operand_space(A, (b, x0), device, stream, comm)
    n, _ = sizes(space, ("A", A), vectors=(b,))
    char = problem_scalar(A, b, None if isinstance(M, str) else M)
    right = space.block(b, char, "b", rows=n)
    _require_finite(space, right, "b")
    vector = right.ndim == 1
    columns = right[:, None] if vector else right
    x = space.zeros(tuple(columns.shape), char)
    if x0 is not None:
        guess = space.block(x0, char, "x0", rows=n)
        if tuple(guess.shape) != tuple(right.shape):
            raise ValueError(f"x0 has shape {tuple(guess.shape)}, b has {tuple(right.shape)}")
        _require_finite(space, guess, "x0")
        x[...] = guess[:, None] if vector else guess
    request = _core.LinearRequest()
    request.method, request.restart, request.shift = method, restart, shift
    request.max_iterations = steps
    request.x_is_guess = x0 is not None
    request.tol = _tolerances(space, columns, rtol, atol)
    a = make_operator(A, n, space, char, "A")
    if isinstance(M, str):
        if not a.is_sparse:
            raise ValueError("M: a name needs the entries of A; pass a sparse matrix")
        preconditioner = None if M == "none" else _core.make_preconditioner(a, M, None, None)
    else:
        preconditioner = None if M is None else make_operator(M, n, space, char, "M")
    if columns.shape[1] == 0:
        nothing = np.zeros(0)
        empty = LinearInfo(True, 0, 0, 0.0, "", nothing, nothing, nothing.astype(int), [], [])
        return (x, 0, empty) if full_output else (x, 0)
    with space.entered(), Progress(callback, "column") as progress:
        outcome = _core.linear_solve(space.context, request, a, space.raw(columns), space.raw(x),
                                     preconditioner, progress)
    info = 0
    if not outcome.converged:
        broken = any(column.status in ("breakdown", "not finite") for column in outcome.columns)
        info = -1 if broken else max(1, int(outcome.iterations))
    solution = x[:, 0] if vector else x
    return (solution, info, _details(outcome)) if full_output else (solution, info)


def _require_finite(space: Space, x: Any, name: str) -> None:
    if not bool(space.module().isfinite(x).all()):
        raise ValueError(f"{name} has entries that are not finite")


def _details(outcome: Any) -> LinearInfo:
    columns = outcome.columns
    return LinearInfo(outcome.converged, int(outcome.iterations),
                      int(outcome.operator_applications), outcome.seconds, outcome.message,
                      np.array([column.residual for column in columns]),
                      np.array([column.b_norm for column in columns]),
                      np.array([column.iterations for column in columns], dtype=int),
                      [column.status for column in columns],
                      [column.message for column in columns])


def _size(A: Any, b: Any) -> int:
    """The order n of A, from which the default of maxiter is computed."""
    shape = shape_of(A)
    return int(shape[1]) if shape is not None and len(shape) == 2 else len(b)


def cg(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0,
       maxiter: int | None = None, M: Any = None, callback: Any = None, device: Any = None,
       stream: Any = None, comm: Any = None,
       full_output: bool = False) -> Any:
    """Solve A x = b for Hermitian positive definite A by block conjugate gradients.
    """
    return _solve("cg", A, b, x0, rtol, atol, maxiter or 10 * _size(A, b), M, callback, device,
                  stream, comm, full_output=full_output)


def bicgstab(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0,
             maxiter: int | None = None, M: Any = None, callback: Any = None, device: Any = None,
             stream: Any = None, comm: Any = None,
             full_output: bool = False) -> Any:
    """Solve A x = b for any A by BiCGStab.
    """
    return _solve("bicgstab", A, b, x0, rtol, atol, maxiter or 10 * _size(A, b), M, callback,
                  device, stream, comm, full_output=full_output)


def gmres(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0,
          restart: int | None = None, maxiter: int | None = None, M: Any = None,
          callback: Any = None, callback_type: str | None = None, device: Any = None,
          stream: Any = None, comm: Any = None,
          full_output: bool = False) -> Any:
    """Solve A x = b for any A by restarted GMRES.
    """
    n = _size(A, b)
    length = min(restart or 20, n)
    return _solve("gmres", A, b, x0, rtol, atol, (maxiter or 10 * n) * length, M, callback, device,
                  stream, comm, restart=length, full_output=full_output)


def minres(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, shift: float = 0.0,
           maxiter: int | None = None, M: Any = None, callback: Any = None, show: bool = False,
           check: bool = False, device: Any = None, stream: Any = None,
           comm: Any = None,
           full_output: bool = False) -> Any:
    """Solve (A - shift I) x = b for Hermitian, possibly indefinite A by MINRES.
    """
    return _solve("minres", A, b, x0, rtol, 0.0, maxiter or 5 * _size(A, b), M, callback, device,
                  stream, comm, shift=float(shift), full_output=full_output)


_STEPS = "Steps before the solver gives up; {} n if not given."
for _function, _values in (
    (cg, dict(matrix=", Hermitian positive definite", callback_type="", extra="", maxiter=_STEPS.format(10),
              preconditioner=", Hermitian and positive definite")),
    (bicgstab, dict(matrix="", callback_type="", extra="", maxiter=_STEPS.format(10), preconditioner="")),
    (gmres, dict(matrix="", callback_type="\n    callback_type : ignored", extra="    restart : int, optional\n        Steps before a restart; "
                 "min(20, n) if not given.\n", maxiter="Restarts before the solver gives up; 10 n "
                 "if not given.", preconditioner="")),
    (minres, dict(matrix=", Hermitian", callback_type="", extra="    shift : float\n        Real shift.\n    show, "
                  "check : ignored\n", maxiter=_STEPS.format(5),
                  preconditioner=", Hermitian and positive definite")),
):
    _text = _SHARED.format(name=_function.__name__, **_values)
    if _function is minres:
        _text = _text.replace("rtol, atol : float\n        Column j has converged when ``||b_j - A "
                              "x_j|| <= max(rtol ||b_j||, atol)``.",
                              "rtol : float\n        Column j has converged when ``||b_j - (A - "
                              "shift I) x_j|| <= rtol ||b_j||``.")
    _function.__doc__ = (_function.__doc__ or "").rstrip() + "\n" + _text
