# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of torch in host memory: values, layouts, memory and warnings. Skipped without torch."""

import warnings

import numpy as np
import pytest
import quiver
import scipy.linalg
from support import check_pairs, random_definite, random_hermitian, spectrum, wanted

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.skipif(torch is None, reason="torch is not installed")


@pytest.fixture(autouse=True)
def no_warnings():
    """torch warns of read-only arrays once in a process, unless it is told to warn always."""
    torch.set_warn_always(True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*CSR.*beta|Sparse invariant checks")
        yield
    torch.set_warn_always(False)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("char", "fdFD")
def test_functions_and_read_only_guesses(rng, char):
    a = random_hermitian(rng, 120, char)
    dense = torch.from_numpy(a.toarray())
    operator = quiver.LinearOperator(a.shape, lambda X: dense @ X, a.dtype)
    v0 = torch.ones((120, 2), dtype=dense.dtype)
    w, v = quiver.eigsh(operator, 3, which="SA", v0=v0, method="lanczos")
    check_pairs(a, w.numpy(), v.numpy(), wanted(spectrum(a), 3, "SA"))
    guess = read_only(np.ones((120, 2), a.dtype))
    w, v = quiver.eigsh(dense, 3, which="SA", v0=guess, method="lanczos")
    check_pairs(a, w.numpy(), v.numpy(), wanted(spectrum(a), 3, "SA"))
    assert not guess.flags.writeable and np.all(guess == 1)


def test_read_only_arrays_are_not_copied(rng):
    space = quiver._arrays.space_of(torch.ones(3))
    x = read_only(rng.standard_normal((50, 4)))
    tensor = space.from_numpy(x)
    assert tensor.data_ptr() == x.ctypes.data
    address = x.ctypes.data
    expected = x.copy()
    del x  # the tensor keeps the memory
    assert tensor.data_ptr() == address and np.array_equal(tensor.numpy(), expected)
    b = read_only(np.ones(50))
    a = random_definite(rng, 50, "d")
    solution, info = quiver.cg(torch.from_numpy(a.toarray()), b, rtol=1e-10)
    assert info == 0
    np.testing.assert_allclose(solution.numpy(), np.linalg.solve(a.toarray(), b), atol=1e-8)


def test_a_dense_tensor_gets_a_dense_solve():
    n = 1030
    a = np.diag(np.full(n, 2.0)) - np.diag(np.ones(n - 1), 1) - np.diag(np.ones(n - 1), -1)
    w, v, info = quiver.eigsh(torch.from_numpy(a), 2, which="SA", full_output=True)
    np.testing.assert_allclose(w.numpy(), scipy.linalg.eigvalsh(a)[:2], atol=1e-12)
    assert isinstance(v, torch.Tensor) and info.method == "dense"


def random_tensor(rng, shape, char):
    x = rng.standard_normal(shape)
    return torch.from_numpy((x + 1j * rng.standard_normal(shape) if char in "FD" else x)
                            .astype(char))


@pytest.mark.parametrize("char", "fdFD")
def test_layouts(rng, char):
    base = random_tensor(rng, (60, 12), char)
    layouts = [base, base[::2], base[:, 2:7], base[1::3, :5], base[:, ::2], base.T[:12, :12],
               base[:, 3:4], base[:1], base[:0], base[:, :0], base.conj(), base[5]]
    layouts += [base.clone().requires_grad_(), torch.nn.Parameter(base.clone())]
    if char in "FD":
        layouts += [base.conj().imag, base.conj()[:, 1:4], base.real]
    eps = np.finfo(char).eps
    for x in layouts:
        host = x.detach().resolve_conj().resolve_neg().numpy()
        if x.ndim == 1:
            with pytest.raises(ValueError, match="one dimension"):
                quiver.gram(x)
            continue
        product = quiver.tsmttsm(x, x)
        assert type(product) is torch.Tensor and product.dtype == x.dtype
        np.testing.assert_allclose(product.numpy(), host.conj().T @ host, atol=500 * eps)
        c = random_tensor(rng, (x.shape[1], 3), char)
        c = c if x.is_complex() else c.real.clone()
        np.testing.assert_allclose(quiver.tsmm(x, c).numpy(), host @ c.numpy(), atol=200 * eps)


def test_results_are_written_to_the_memory_of_out(rng):
    x, c = random_tensor(rng, (50, 4), "d"), random_tensor(rng, (4, 3), "d")
    frame = torch.full((50, 5), 7.0, dtype=torch.float64)
    out = frame[:, 1:4]
    assert quiver.tsmm(x, c, out=out) is out
    torch.testing.assert_close(frame[:, 1:4], x @ c)
    assert bool((frame[:, [0, 4]] == 7).all())
    torch.testing.assert_close(quiver.tsmm(x, c, alpha=2.0, beta=-1.0, out=out), x @ c)
    for bad in (torch.zeros(50, 3, dtype=torch.float64, requires_grad=True),
                torch.nn.Parameter(torch.zeros(50, 3, dtype=torch.float64)),
                torch.zeros(50, 3, dtype=torch.complex128).conj()):
        with pytest.raises(ValueError, match="out: a result is not written to a tensor that requires"):
            quiver.tsmm(x, c.to(bad.dtype), out=bad)
        assert not bool(bad.detach().any())
    for bad, text in ((torch.zeros(50, 3), "dtype"), (np.zeros((50, 3)), "another library"),
                      (torch.zeros(3, 50, dtype=torch.float64).T, "contiguous")):
        with pytest.raises(ValueError, match=text):
            quiver.tsmm(x, c, out=bad)
    with pytest.raises(TypeError, match="sparse matrix is not a block"):
        quiver.gram(x.to_sparse())
    with pytest.raises(ValueError, match="not supported"):
        quiver.gram(torch.zeros(3, 2, device="meta"))


@pytest.mark.parametrize("char", "fdFD")
def test_a_plain_tensor_is_not_exported_by_its_methods(rng, char, monkeypatch):
    x, c = random_tensor(rng, (50, 6), char)[:, 1:5], random_tensor(rng, (4, 4), char)
    expected = x.mH @ x, x @ c

    def refuse(*_args, **_options):
        raise AssertionError("a slow export was called")

    y = x.clone()
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "__dlpack__", refuse)
        patch.setattr(torch.Tensor, "numpy", refuse)
        product = quiver.tsmttsm(x, x)
        assert quiver.tsmm(y, c, out=y) is y  # in place
        q, r = quiver.qr(x)
        factors = quiver.lu(c[None])
    tolerance = {"rtol": 0, "atol": 500 * float(np.finfo(char).eps)}
    torch.testing.assert_close(product, expected[0], **tolerance)
    torch.testing.assert_close(y, expected[1], **tolerance)
    torch.testing.assert_close(q @ r, x, **tolerance)
    assert not bool(factors.status.any())


def test_results_of_a_call_in_inference_mode_do_not_restrict_later_results():
    x = torch.ones(30, 2, dtype=torch.float64)
    quiver._arrays._torch().templates.clear()
    with torch.inference_mode():
        assert quiver.gram(x).is_inference()
    later = quiver.gram(x)
    assert not later.is_inference()
    assert (later.requires_grad_() * 2).sum().requires_grad


@pytest.mark.parametrize("other", [torch and torch.float32, torch and torch.int64])
def test_two_dtypes_are_converted_to_the_common_one(rng, other):
    x = random_tensor(rng, (40, 3), "d")
    y = (4 * random_tensor(rng, (40, 2), "d")).to(other)
    product = quiver.tsmttsm(x, y)
    assert product.dtype == torch.float64
    torch.testing.assert_close(product, x.T @ y.double(), rtol=1e-12, atol=1e-12)


def test_a_complex_start_of_a_real_problem_is_refused(rng):
    a = random_hermitian(rng, 60, "d")
    v0 = random_tensor(rng, (60, 2), "D")
    for start in (v0, v0.numpy()):
        with pytest.raises(ValueError, match="v0 is complex, but the other arguments are real"):
            quiver.eigsh(a, 3, v0=start)
    dense = torch.from_numpy(a.toarray())
    with pytest.raises(ValueError, match="v0 is complex"):
        quiver.eigsh(dense, 3, v0=v0)


def test_the_capsule_keeps_the_memory():
    """A capsule that no call consumes frees nothing but its own reference."""
    import gc
    import weakref

    x = torch.ones(100, 2)
    seen = weakref.ref(x)
    capsule = quiver._arrays.space_of(x).raw(x)
    del x
    gc.collect()
    assert seen() is not None
    del capsule
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("char", "dF")
def test_batches_and_solves(rng, char):
    small = random_tensor(rng, (7, 5, 5), char)
    right = random_tensor(rng, (7, 5), char)
    x = quiver.solve(small, right)
    torch.testing.assert_close(torch.einsum("bij,bj->bi", small, x), right, rtol=1e-2, atol=1e-2)
    factors, pivots, status = quiver.lu(small)
    assert pivots.dtype == torch.int32 and not bool(status.any()) and factors.shape == small.shape
    q, r = quiver.qr(random_tensor(rng, (40, 6), char))
    torch.testing.assert_close(q.mH @ q, torch.eye(6, dtype=q.dtype), rtol=0, atol=1e-5)
    a = random_definite(rng, 60, char)
    csr = torch.sparse_csr_tensor(torch.from_numpy(a.indptr), torch.from_numpy(a.indices),
                                  torch.from_numpy(a.data), size=a.shape)
    b = random_tensor(rng, (60, 3), char)
    solution, info = quiver.cg(csr, b, rtol=1e-5)
    assert info == 0
    assert np.linalg.norm(a @ solution.numpy() - b.numpy()) <= 1e-4 * np.linalg.norm(b.numpy())
    torch.testing.assert_close(quiver.spmm(csr, b), torch.from_numpy(a @ b.numpy()))
