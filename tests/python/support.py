# SPDX-License-Identifier: BSD-3-Clause
"""Random matrices, dense reference eigenvalues, the selection that SciPy documents, and checks of pairs."""

import numpy as np
import scipy.linalg
import scipy.sparse as sp


def random_hermitian(rng, n, char, density=0.1):
    """A sparse Hermitian matrix with random entries, CSR."""
    a = sp.random(n, n, density, random_state=rng, data_rvs=rng.standard_normal)
    if char in "FD":
        b = sp.random(n, n, density, random_state=rng, data_rvs=rng.standard_normal)
        a = a + 1j * b
    a = a + a.conj().T + sp.diags(rng.standard_normal(n))
    return sp.csr_matrix(a).astype(char)


def random_definite(rng, n, char):
    """A sparse Hermitian positive definite matrix with eigenvalues from about 1 to 3."""
    a = random_hermitian(rng, n, char, 0.05)
    a = a * (1 / max(1.0, abs(a).sum(axis=0).max()))
    return sp.csr_matrix(a + 2 * sp.identity(n)).astype(char)


def spectrum(a, m=None):
    """All eigenvalues in double precision, ascending."""
    dense = lambda x: x.toarray().astype("D")  # noqa: E731
    return scipy.linalg.eigvalsh(dense(a), None if m is None else dense(m))


def wanted(w, k, which, sigma=None, mode="normal"):
    """Those k of all eigenvalues w that eigsh must return, ascending."""
    value = w
    if sigma is not None:
        value = {"normal": 1 / (w - sigma), "buckling": w / (w - sigma),
                 "cayley": (w + sigma) / (w - sigma)}[mode]
    order = np.argsort(value)
    if which == "LA":
        chosen = order[-k:]
    elif which == "SA":
        chosen = order[:k]
    elif which == "BE":
        chosen = np.concatenate([order[:k // 2], order[len(w) - (k - k // 2):]])
    else:
        order = np.argsort(abs(value))
        chosen = order[-k:] if which == "LM" else order[:k]
    return np.sort(w[chosen])


def check_pairs(a, w, v, expected, m=None):
    """Checks values, residuals, orthonormality and dtypes of a result at the attainable tolerance."""
    char = a.dtype.char
    eps = np.finfo(char).eps
    norm = scipy.sparse.linalg.norm(a, 2) if min(a.shape) > 10 else np.linalg.norm(a.toarray(), 2)
    scale = max(norm, 1e-30) + (0 if m is None else 3 * abs(w).max())
    assert w.dtype == np.dtype(char.lower())
    assert v.dtype == np.dtype(char)
    assert v.shape == (a.shape[0], len(w))
    assert np.all(np.diff(w) >= 0)
    wide = a.astype("D")
    mass = sp.identity(a.shape[0]) if m is None else m.astype("D")
    x = v.astype("D")
    length = np.linalg.norm(x, axis=0)
    residual = np.linalg.norm(wide @ x - (mass @ x) * w, axis=0) / length
    # The tolerance is 32 units of round-off, or up to 16 times that if the solver raised it (docs/solvers.md).
    assert residual.max() <= 600 * eps * scale
    defect = abs(x.conj().T @ (mass @ x) - np.eye(len(w))).max()
    assert defect <= 500 * eps
    assert len(w) == len(expected)
    np.testing.assert_allclose(w, expected, rtol=0, atol=600 * eps * scale)
