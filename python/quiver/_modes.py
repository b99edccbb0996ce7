# SPDX-License-Identifier: BSD-3-Clause
"""Vibration modes."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np

from . import _core
from ._arrays import Space, number_from_zero, sparse_source, whole_number
from ._eigen import EigenInfo, Iteration, Progress, _deliver, _Problem
from ._operators import SparseMatrix, make_operator, operand_space, problem_scalar, sizes


class Modes(NamedTuple):
    """The result of `modes`."""

    #: (k,): ascending. 0 for rigid-body modes, negative for unstable modes (negative eigenvalues).
    frequencies: np.ndarray
    #: (n, k): the modes x with x^T M x = 1, of the caller's array library.
    vectors: Any
    #: (k,): x^T M x for the mode scaled so that its largest element is 1 or -1.
    modal_masses: np.ndarray
    #: (k, 0, 3 or 6): the participation factors x^T M r of the directions x, y, z and, with
    #: coordinates, of the rotations about the axes through the centre of mass.
    participation: np.ndarray
    #: (0, 3 or 6,): the mass of the whole body in each direction.
    total_masses: np.ndarray
    #: The numbers of rigid-body modes and of unstable modes among the k.
    rigid: int
    unstable: int
    #: The dimension of the null space of M: so many eigenvalues are infinite.
    infinite: int
    #: True if there may be more infinite eigenvalues: only the zero rows of M were counted.
    infinite_at_least: bool
    #: (k,): the eigenvalues lambda of K x = lambda M x.
    eigenvalues: np.ndarray
    info: EigenInfo
    #: Modes up to this frequency counted as rigid; 0 without rigid modes. In a structure that is stiff
    #: elsewhere, soft modes below it are among the rigid ones.
    rigid_limit: float

    @property
    def effective_masses(self) -> np.ndarray:
        """(k, 0, 3 or 6): the squares of `participation`."""
        return self.participation**2


def modes(K: Any, M: Any, k: int = 6, *, range: tuple[float, float] | None = None,
          near: float | None = None, unit: str = "Hz", coordinates: Any = None,
          translations: bool = False, rigid_below: float = 0, tol: float = 1e-10,
          method: str = "auto", max_seconds: float = 0, comm: Any = None, device: Any = None,
          stream: Any = None, callback: Callable[[Iteration], Any] | str | None = None) -> Modes:
    """Vibration modes of K x = lambda M x, with frequencies sqrt(lambda) / (2 pi).

    The k modes with the smallest eigenvalues, all modes in a range of frequencies, or the k modes
    nearest a frequency. K may be singular: modes with lambda = 0 to rounding are rigid. M may be
    singular, lumped or consistent.

    Parameters
    ----------
    K, M : sparse matrix or SparseMatrix, (n, n)
        Symmetric and real; M is positive semidefinite.
    k : int
        The number of modes, at most n minus the dimension of the null space of M.
    range : (float, float), optional
        All modes with frequencies in this range; `k` is ignored. A range from 0 includes the
        rigid-body modes.
    near : float, optional
        The k modes whose lambda is nearest to that of this frequency.
    unit : {'Hz', 'rad/s'}
        The unit of all frequencies.
    coordinates : array, (n / 3, 3), optional
        The nodes of a model with three unknowns a node (x, y, z of node 0, then of node 1, ...),
        for participation factors. With `comm`, the nodes of this rank's rows.
    translations : bool
        Three unknowns a node without coordinates: participation in x, y and z only.
    rigid_below : float
        Modes below this frequency also count as rigid.
    tol, method, max_seconds, comm, device, stream, callback : optional
        As in `eigsh`. 'auto' is a dense solve up to 1,024 rows with a regular M, otherwise shift
        and invert if K and M can be factorised.

    Returns
    -------
    Modes
        frequencies, vectors, modal_masses, participation, total_masses, rigid, unstable, infinite,
        infinite_at_least, eigenvalues, info, rigid_limit.

    Raises
    ------
    NoConvergence, Unverified
        As `eigsh`.
    ValueError
        For an argument out of range, a matrix that is not symmetric or has NaN, a negative mass.
    TypeError
        For a matrix that is dense or complex.

    Examples
    --------
    >>> import scipy.sparse as sp, quiver
    >>> K = sp.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> result = quiver.modes(K, sp.eye_array(3, format="csr"), 3, unit="rad/s")
    >>> result.rigid, result.frequencies.round(6).tolist()
    (1, [0.0, 1.0, 1.732051])
    """
    if unit not in ("Hz", "rad/s"):
        raise ValueError(f"unit={unit!r} is not 'Hz' or 'rad/s'")
    if range is not None and near is not None:
        raise ValueError("range and near exclude each other: omit one of them")
    for name, matrix in (("K", K), ("M", M)):
        if not isinstance(matrix, SparseMatrix) and sparse_source(matrix) is None:
            raise TypeError(f"{name} is not a sparse matrix: pass scipy.sparse.csr_array({name})")
    space = operand_space(K, (), device, stream, comm)
    rows, n = sizes(space, ("K", K))
    char = problem_scalar(K, M)
    if char not in "fd":
        raise TypeError("K or M is complex; real symmetric matrices are expected")
    stiffness = make_operator(K, rows, space, char, "K")
    mass = make_operator(M, rows, space, char, "M")
    request = _core.ModesRequest()
    request.k, request.method = whole_number(k, "k"), method
    request.tol = number_from_zero(tol, "tol")
    request.max_seconds = number_from_zero(max_seconds, "max_seconds")
    request.rigid_below = float(rigid_below)
    request.near = None if near is None else float(near)
    if range is not None:
        request.k, request.range = 1, (float(range[0]), float(range[1]))
    request.unit = _core.hertz if unit == "Hz" else 1.0
    directions = _directions(space, char, rows, coordinates, translations)
    with Progress(callback, "mode") as progress, space.entered():
        outcome = _core.modes(space.context, request, stiffness, mass,
                              None if directions is None else space.raw(directions), progress)
    problem = _Problem(space, char, rows, n, stiffness, mass, None, None, None, None, progress,
                       request)
    _, vectors, info = _deliver(problem, outcome, None, 0.0, None if range is not None else whole_number(k, "k"),
                                True, True, "raise")
    participation = np.array(outcome.participation, dtype="d").reshape(
        len(outcome.total_masses), len(outcome.frequencies)).T
    return Modes(np.array(outcome.frequencies), vectors, np.array(outcome.modal_masses),
                 participation, np.array(outcome.total_masses), outcome.rigid, outcome.unstable,
                 outcome.infinite, outcome.infinite_at_least, np.array(outcome.eigenvalues), info,
                 outcome.rigid_limit)


def _directions(space: Space, char: str, rows: int, coordinates: Any, translations: bool) -> Any:
    """Translations and rotations about the origin for three unknowns a node, or None."""
    if coordinates is None and not translations:
        return None
    if rows % 3 != 0:
        raise ValueError(f"{rows} rows (of this rank) are not three for each node")
    nodes = rows // 3
    blocks = np.zeros((nodes, 3, 3 if coordinates is None else 6))
    blocks[:, :, :3] = np.eye(3)
    if coordinates is not None:
        points = np.asarray(coordinates, dtype="d")
        if points.shape != (nodes, 3):
            raise ValueError(f"coordinates has shape {points.shape}; ({nodes}, 3) is expected")
        for axis in (0, 1, 2):
            blocks[:, :, 3 + axis] = np.cross(np.eye(3)[axis], points)
    return space.block(space.from_numpy(blocks.reshape(rows, -1).astype(char)), char, "coordinates")
