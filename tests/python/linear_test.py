# SPDX-License-Identifier: BSD-3-Clause
"""cg, minres, gmres and bicgstab against dense solutions."""

import numpy as np
import pytest
import quiver
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from support import random_definite, random_hermitian

SOLVERS = {"cg": quiver.cg, "minres": quiver.minres, "gmres": quiver.gmres,
           "bicgstab": quiver.bicgstab}


def system(rng, name, n, char):
    """A matrix for the solver: definite, indefinite, or not Hermitian."""
    a = random_definite(rng, n, char)
    if name == "minres":
        signs = sp.diags(np.where(rng.random(n) < 0.5, -1.0, 1.0))
        a = (signs @ random_definite(rng, n, char) @ signs
             - 2 * sp.diags((rng.random(n) < 0.3) * 2.0))
    elif name != "cg":
        a = a + sp.random(n, n, 0.02, random_state=rng) * 0.3
    return sp.csr_matrix(a).astype(char)


def block(rng, shape, char):
    x = rng.standard_normal(shape)
    if char in "FD":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(char)


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("name", SOLVERS)
def test_solutions(rng, name, char):
    n = int(rng.integers(20, 150))
    rtol = 1e-4 if char in "fF" else 1e-10
    a = system(rng, name, n, char)
    for shape in ((n,), (n, 1), (n, 5)):
        b = block(rng, shape, char)
        x, info = SOLVERS[name](a, b, rtol=rtol)
        assert info == 0
        assert x.shape == shape and x.dtype == np.dtype(char)
        residual = np.linalg.norm(a @ x - b, axis=0)
        assert np.all(residual <= 1.01 * rtol * np.linalg.norm(b, axis=0))
        exact = np.linalg.solve(a.toarray().astype("D"), b.astype("D"))
        kappa = np.linalg.cond(a.toarray().astype("D"))
        assert np.linalg.norm(x - exact) <= 2 * kappa * rtol * np.linalg.norm(exact)


@pytest.mark.parametrize("name", SOLVERS)
def test_numbers_that_are_not_finite_and_full_output(rng, name):
    a = system(rng, name, 60, "d")
    b = block(rng, (60, 3), "d")
    for value in (np.nan, np.inf):
        bad = b.copy()
        bad[5, 1] = value
        with pytest.raises(ValueError, match="^b has entries that are not finite"):
            SOLVERS[name](a, bad)
        with pytest.raises(ValueError, match="^x0 has entries that are not finite"):
            SOLVERS[name](a, b, bad)
    b[:, 1] = 0
    x, info, details = SOLVERS[name](a, b, rtol=1e-9, full_output=True)
    assert info == 0 and details.converged and details.statuses == ["converged"] * 3
    assert np.allclose(details.b_norms, np.linalg.norm(b, axis=0))
    assert np.allclose(details.residuals, np.linalg.norm(a @ x - b, axis=0),
                       atol=1e-13 * np.linalg.norm(b))
    x, info, details = SOLVERS[name](a, b, rtol=1e-12, maxiter=1, full_output=True,
                                     **({"restart": 1} if name == "gmres" else {}))
    assert info == 1 and not details.converged
    assert details.statuses == ["out of iterations", "converged", "out of iterations"]
    assert "right-hand side 3 of 3" in details.messages[2]
    assert details.message.endswith(details.messages[0])


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("char,scale", [("d", 2.0 ** -600), ("d", 2.0 ** 600), ("f", 2.0 ** -85)])
def test_right_hand_sides_of_any_scale(rng, name, char, scale):
    a = system(rng, name, 40, char)
    b = block(rng, (40,), char)
    rtol = 1e-3 if char == "f" else 1e-9
    x, info = SOLVERS[name](a, (b * scale).astype(char), rtol=rtol)
    assert info == 0
    assert np.linalg.norm(a @ (x / scale) - b) <= 1.01 * rtol * np.linalg.norm(b)


@pytest.mark.parametrize("name", SOLVERS)
def test_options(rng, name):
    n = 80
    a = system(rng, name, n, "d")
    b = block(rng, (n, 3), "d")
    exact = np.linalg.solve(a.toarray(), b)
    guess = exact + 1e-3 * block(rng, (n, 3), "d")
    x, info = SOLVERS[name](a, b, guess, rtol=1e-9)
    assert info == 0
    np.testing.assert_allclose(x, exact, atol=1e-6)
    x, info = SOLVERS[name](a, b, np.zeros((n, 3)), rtol=1e-12, maxiter=1)
    assert info > 0 or name == "gmres"
    x, info = SOLVERS[name](a, np.zeros(n), rtol=1e-10)
    assert info == 0 and not x.any()
    if name != "minres":
        x, info = SOLVERS[name](a, b, rtol=0.0, atol=1e-6)
        assert info == 0
        assert np.all(np.linalg.norm(a @ x - b, axis=0) <= 1.01e-6)
    x, info = SOLVERS[name](a, b[:, :0])
    assert info == 0 and x.shape == (n, 0)


@pytest.mark.parametrize("m", ["jacobi", "ic", "ldlt", "function", "LinearOperator", "matrix"])
def test_preconditioners(rng, m):
    n = 120
    a = sp.csr_matrix(random_definite(rng, n, "d") @ sp.diags(np.ones(n)))
    scale = sp.diags(np.logspace(0, 3, n))
    a = sp.csr_matrix(scale @ a @ scale)
    b = block(rng, (n, 2), "d")
    diagonal = 1 / a.diagonal()
    preconditioner = {"function": lambda X: diagonal[:, None] * X,
                      "LinearOperator": sla.LinearOperator(a.shape, lambda x: diagonal * x.ravel(),
                                                           dtype="d"),
                      "matrix": sp.diags(diagonal)}.get(m, m)
    x, info = quiver.cg(a, b, rtol=1e-10, M=preconditioner)
    assert info == 0
    assert np.all(np.linalg.norm(a @ x - b, axis=0) <= 1.01e-10 * np.linalg.norm(b, axis=0))
    _, steps = quiver.cg(a, b, rtol=1e-10, M=preconditioner, maxiter=40)
    assert steps == 0
    _, steps = quiver.cg(a, b, rtol=1e-10, maxiter=40)
    assert steps != 0


def test_minres_shift(rng):
    a = random_hermitian(rng, 60, "d")
    b = block(rng, (60, 2), "d")
    x, info = quiver.minres(a, b, rtol=1e-10, shift=100.0)
    assert info == 0
    np.testing.assert_allclose(x, np.linalg.solve(a.toarray() - 100 * np.eye(60), b), atol=1e-8)


def test_operators_and_exceptions(rng):
    a = random_definite(rng, 50, "d")
    b = block(rng, (50,), "d")
    exact = np.linalg.solve(a.toarray(), b)
    for matrix in (a.tocoo(), a.toarray(), quiver.SparseMatrix(a), lambda X: a @ X,
                   sla.aslinearoperator(a), quiver.LinearOperator(a.shape, lambda X: a @ X)):
        x, info = quiver.cg(matrix, b, rtol=1e-12)
        assert info == 0
        np.testing.assert_allclose(x, exact, atol=1e-10)

    def fails(X):
        raise LookupError("in the product")

    for solver in SOLVERS.values():
        with pytest.raises(LookupError, match="in the product"):
            solver(fails, b)
    x, _ = quiver.cg(random_definite(rng, 50, "d"), 1j * b)
    assert x.dtype == np.dtype("D")


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("columns", [None, 3])
def test_callbacks_and_their_exceptions(rng, name, columns):
    a = system(rng, name, 60, "d")
    b = block(rng, (60,) if columns is None else (60, columns), "d")
    seen = []
    x, info, details = SOLVERS[name](a, b, rtol=1e-8, callback=seen.append, full_output=True)
    assert info == 0
    assert [event.iteration for event in seen] == list(range(1, details.iterations + 1))
    assert all(isinstance(event, quiver.Iteration) and event.wanted == (columns or 1)
               and event.stage == "solve" for event in seen)
    assert seen[0].converged == 0 and seen[0].residual > 1e-8
    # An event counts only columns well below the tolerance; others may still meet it at the end.
    assert all(0 <= event.converged <= event.wanted for event in seen)
    assert seen[-1].residual <= 1.01e-8

    def product(X):  # The callback gets no events of the solve inside this product.
        quiver.cg(sp.identity(5), np.ones(5))
        return a @ X

    nested = []
    SOLVERS[name](product, b, rtol=1e-8, callback=nested.append)
    assert [event.iteration for event in nested] == list(range(1, len(nested) + 1))

    calls = []

    def stop(event):
        calls.append(event)
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        SOLVERS[name](a, b, rtol=1e-8, callback=stop)
    assert len(calls) == 1
    with pytest.raises(ValueError, match="progress"):
        SOLVERS[name](a, b, callback="bar")


def test_refused_arguments(rng):
    a = random_definite(rng, 20, "d")
    b = np.ones(20)
    for arguments, text in [(dict(b=np.ones(19)), "19 rows"), (dict(rtol=-1.0), "rtol"),
                            (dict(x0=np.ones((20, 2))), "x0"), (dict(M="magic"), "magic"),
                            (dict(M=sp.identity(19)), "19 rows")]:
        with pytest.raises(ValueError, match=text):
            quiver.cg(**{"A": a, "b": b, **arguments})
    with pytest.raises(TypeError, match="callback"):
        quiver.gmres(a, b, callback=3)
    with pytest.raises(TypeError, match=r"b is a sparse matrix.*b\.toarray\(\)"):
        quiver.cg(a, sp.csr_matrix(b[:, None]))
    with pytest.raises(ValueError, match="square"):
        quiver.cg(np.ones((3, 4)), b)
    with pytest.raises(ValueError, match="name"):
        quiver.cg(lambda X: X, b, M="ic")


def test_a_preconditioner_that_is_not_hermitian(rng):
    """Incomplete factors with pivots: some stall cg, others do not."""
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(40, 40))
    a = (sp.kron(line, sp.identity(40)) + sp.kron(sp.identity(40), line)).tocsc()
    b = block(rng, (1600, 8), "d")
    bad = sla.spilu(a, drop_tol=1e-2, fill_factor=5)
    preconditioner = quiver.LinearOperator(a.shape, bad.solve)
    steps = []
    _, info, details = quiver.cg(a, b, rtol=1e-8, M=preconditioner, callback=steps.append,
                                 full_output=True)
    assert info == -1 and len(steps) < 60
    assert "the preconditioner M is not Hermitian: " in details.message
    assert "use gmres" in details.message
    _, info, details = quiver.cg(a, b[:, 0], rtol=1e-8, M=preconditioner, maxiter=60,
                                 full_output=True)
    assert info == 60 and "the preconditioner M is not Hermitian" in details.message
    x, info = quiver.gmres(a, b, rtol=1e-8, M=preconditioner, restart=200)
    assert info == 0 and np.all(np.linalg.norm(a @ x - b, axis=0)
                                <= 1.01e-8 * np.linalg.norm(b, axis=0))
    good = sla.spilu(a, drop_tol=1e-3, fill_factor=10)
    x, info = quiver.cg(a, b, rtol=1e-8, M=quiver.LinearOperator(a.shape, good.solve))
    assert info == 0 and np.all(np.linalg.norm(a @ x - b, axis=0)
                                <= 1.01e-8 * np.linalg.norm(b, axis=0))
