# SPDX-License-Identifier: BSD-3-Clause
"""Exact diagonalisation of spins and fermions."""

from __future__ import annotations

import os
import pathlib
from typing import Any, Mapping, NamedTuple

import numpy as np

from . import _core
from ._arrays import number_from_zero, scalar_of, space_of, whole_number


class Density(NamedTuple):
    """A spectral density at equally spaced energies, by the kernel polynomial method."""

    #: (points,): the energies.
    energies: np.ndarray
    #: (points,): the density at these energies.
    density: np.ndarray
    #: (points,): the standard errors from the spread over the random vectors.
    errors: np.ndarray
    #: The moments of H scaled to [-1, 1], without the kernel.
    moments: np.ndarray
    #: The interval that was mapped to [-1, 1].
    bounds: tuple[float, float]
    #: The standard deviation of the kernel in the middle of the spectrum.
    resolution: float


class ED(NamedTuple):
    """The result of `ed`."""

    #: (k,): the lowest energies, ascending.
    energies: np.ndarray
    #: (n_states, k) or, with a communicator, this rank's rows: the states. None unless
    #: `return_states`.
    states: Any
    #: (energy, number of states) of each level; the last one may have more states.
    levels: list[tuple[float, int]]
    #: The distance of the two lowest levels; NaN with less than two levels.
    gap: float
    #: The density of states; None without `moments`.
    density: Density | None
    #: The spectral function of the probe on the ground states; None without `moments` or a probe.
    probe: Density | None
    #: Whether all energies met the tolerance and their multiplicities are verified.
    converged: bool
    #: The number of basis states of the sector.
    n_states: int


def ed(terms: Any, k: int = 6, *, sector: Mapping[str, Any] | None = None,
       moments: int | None = None, columns: int = 16, points: int = 512,
       return_states: bool = False, tol: float = 1e-10, seed: int = 1, dtype: Any = None,
       device: Any = None, stream: Any = None, comm: Any = None) -> ED:
    """Lowest energies and spectral densities of a Hamiltonian of spins or fermions.

    The matrix is not stored: products compute its entries from the bits of the basis states.

    Parameters
    ----------
    terms : str or path
        The text of the Hamiltonian, one statement a line (docs/exact_diagonalisation.md), or
        'model:heisenberg,L=16,...', 'model:ising,...', 'model:hubbard,...'. A pathlib.Path names a
        file of terms.
    k : int
        The number of lowest energies; 0 for densities only.
    sector : mapping, optional
        Conserved numbers, such as ``{'sz': 0, 'momentum': 0}``; replaces those of the text.
    moments : int, optional
        If given, the density of states is computed from this number of Chebyshev moments and, if
        the text has a probe A, its spectral function <0| A^+ delta(E - H) A |0>.
    columns : int
        Random vectors of the density of states; 0 for the exact trace.
    points : int
        Energies at which densities are given.
    return_states : bool
        Whether the result has the states.
    tol : float
        Residual norms are at most `tol` times the norm of H.
    seed : int
        Seed of all random vectors.
    dtype : dtype, optional
        float64, or complex128 if the matrix is complex, unless given.
    device, stream, comm : optional
        As in `eigsh`.

    Returns
    -------
    ED
        energies, states, levels, gap, density, probe, converged, n_states.

    Raises
    ------
    ValueError
        For wrong terms (the message names the line), terms that do not conserve the numbers of the
        sector, and options out of range.

    Examples
    --------
    >>> import quiver
    >>> result = quiver.ed('model:heisenberg,L=10', k=2, sector={'sz': 0})
    >>> result.n_states, round(float(result.energies[0]), 6), round(result.gap, 4)
    (252, -4.515446, 0.4232)
    """
    text = _text_of(terms)
    for name, value in (sector or {}).items():
        text += f"\nsector {name} {value}"
    char = scalar_of(dtype) if dtype is not None else "D" if _core.is_complex(text) else "d"
    space = space_of(device=device, stream=stream).with_comm(comm)
    request = _core.EdRequest()
    request.k, request.seed = whole_number(k, "k"), whole_number(seed, "seed")
    request.tol = number_from_zero(tol, "tol")
    request.density = moments is not None
    request.moments = int(moments or 0)
    request.columns, request.points = int(columns), int(points)
    outcome = _core.exact_diagonalisation(space.context, char, text, request)
    states = None
    if return_states and k > 0:
        with space.entered():
            states = space.empty((outcome.local_rows, len(outcome.energies)), char)
            outcome.copy_vectors(space.raw(states))
    return ED(np.array(outcome.energies), states, outcome.levels, outcome.gap,
              _density(outcome.density), _density(outcome.probe), outcome.converged,
              outcome.states)


def _text_of(terms: Any) -> str:
    if isinstance(terms, os.PathLike):
        return pathlib.Path(terms).read_text(encoding="utf-8")
    if not isinstance(terms, str):
        raise TypeError(f"terms is a str or a path, not {type(terms).__name__}")
    prefix = "model:"
    return str(_core.model_text(terms[len(prefix):])) if terms.startswith(prefix) else terms


def _density(part: Any) -> Density | None:
    if part is None:
        return None
    return Density(np.array(part.energies), np.array(part.density), np.array(part.errors),
                   np.array(part.moments), part.bounds, part.resolution)
