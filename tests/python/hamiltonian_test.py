# SPDX-License-Identifier: BSD-3-Clause
"""Exact diagonalisation against matrices that SciPy makes of Kronecker products, and against
QuSpin where it is installed."""

import functools

import numpy as np
import pytest
import quiver
import scipy.sparse as sp

PLUS = sp.csr_array([[0.0, 0.0], [1.0, 0.0]])  # basis: spin down, spin up
SZ = sp.csr_array([[-0.5, 0.0], [0.0, 0.5]])


def site(operator, i, n):
    """Site i is bit i, site 0 the last factor."""
    factors = [operator if j == i else sp.eye_array(2) for j in reversed(range(n))]
    return functools.reduce(sp.kron, factors).tocsr()


def heisenberg(n, delta):
    h = sp.csr_array((2**n, 2**n))
    for i in range(n):
        j = (i + 1) % n
        flip = site(PLUS, i, n) @ site(PLUS.T, j, n)
        h = h + 0.5 * (flip + flip.T) + delta * site(SZ, i, n) @ site(SZ, j, n)
    return h.tocsr()


def test_energies_and_states_of_a_ring():
    n = 8
    h = heisenberg(n, 0.7)
    expected = np.linalg.eigvalsh(h.toarray())
    result = quiver.ed("spins 8\nring 0.5 + - 0 1 hc\nring 0.7 z z 0 1\n", k=6, return_states=True)
    assert result.converged and result.n_states == 2**n
    np.testing.assert_allclose(result.energies, expected[:6], atol=1e-9)
    residuals = h @ result.states - result.states * result.energies
    assert np.linalg.norm(residuals, axis=0).max() < 1e-8
    assert sum(count for _, count in result.levels) == 6
    assert result.gap == result.levels[1][0] - result.levels[0][0]


def test_momenta_make_the_whole_spectrum():
    n = 6
    found = np.concatenate([quiver.ed(f"model:heisenberg,L={n},Delta=0.4", k=99,
                                      sector={"momentum": k}).energies for k in range(n)])
    np.testing.assert_allclose(np.sort(found), np.linalg.eigvalsh(heisenberg(n, 0.4).toarray()),
                               atol=1e-10)


def test_density_and_probe(tmp_path):
    file = tmp_path / "terms.txt"
    file.write_text("spins 8\nsector sz 0\nring 0.5 + - 0 1 hc\nring 1 z z 0 1\n"
                    "probe 1 z 0\nprobe -1 z 1\n")
    result = quiver.ed(file, k=1, moments=80, columns=0, points=1000)
    density = result.density
    step = (density.bounds[1] - density.bounds[0]) / 1000
    assert abs(density.density.sum() * step - 70) < 0.1
    # <0| (Sz_0 - Sz_1)^2 |0> = 1/2 - 2 <Sz_0 Sz_1>, and <Sz_0 Sz_1> = E / (3 n).
    assert abs(result.probe.moments[0] - (0.5 - 2 * result.energies[0] / 24)) < 1e-9
    assert quiver.ed(file, k=1).density is None


def test_errors():
    with pytest.raises(ValueError, match="terms:2: `q` is not an operator of spins"):
        quiver.ed("spins 4\nterm 1 q 0\n")
    with pytest.raises(ValueError, match="change the sector's number of up spins"):
        quiver.ed("model:ising,L=4", sector={"sz": 0})
    with pytest.raises(ValueError, match="complex"):
        quiver.ed("model:heisenberg,L=6", sector={"momentum": 1}, dtype="float64")
    with pytest.raises(TypeError, match="a str or a path"):
        quiver.ed(3)


def test_agrees_with_quspin():
    """Lowest energies of spins with random bonds between all pairs."""
    basis = pytest.importorskip("quspin.basis")
    operators = pytest.importorskip("quspin.operators")
    rng = np.random.default_rng(3)
    bonds = [(rng.uniform(-1, 1), i, j) for i in range(8) for j in range(i)]
    text = "spins 8\nsector sz 1\n" + "".join(
        f"term {c / 2!r} + - {i} {j} hc\nterm {c!r} z z {i} {j}\n" for c, i, j in bonds)
    spins = basis.spin_basis_1d(8, Nup=5, pauli=False)
    swaps = [[c / 2, i, j] for c, i, j in bonds]
    ising = [[c, i, j] for c, i, j in bonds]
    theirs = operators.hamiltonian([["+-", swaps], ["-+", swaps], ["zz", ising]], [], basis=spins,
                                   dtype=np.float64, check_herm=False, check_symm=False,
                                   check_pcon=False)
    np.testing.assert_allclose(quiver.ed(text, k=5).energies,
                               np.linalg.eigvalsh(theirs.toarray())[:5], atol=1e-10)
