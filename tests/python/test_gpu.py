# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on a GPU: {numpy, cupy, torch} x four scalars x {CSR, callable} x {current, side stream}.

Tests are skipped without a GPU or without the library. Results are compared with dense ones of the host.
"""

import contextlib

import numpy as np
import pytest
import quiver
import scipy.sparse as sp
from quiver._arrays import Space
from support import check_pairs, random_hermitian, spectrum, wanted


def has_gpu():
    try:
        quiver._core.make_context(0, 0, 0)
        return True
    except (quiver.Error, ValueError):
        return False


pytestmark = pytest.mark.skipif(not has_gpu(), reason="no GPU, or a build without CUDA")
LIBRARIES = ["numpy", "cupy", "torch"]


class Side:
    """The arrays of one library, and its current stream or a new one."""

    def __init__(self, library, side_stream):
        self.name = library
        self.module = np if library == "numpy" else pytest.importorskip(library)
        if library == "torch" and not self.module.cuda.is_available():
            pytest.skip("this torch has no CUDA")
        if library == "numpy" and side_stream:
            pytest.skip("the host has no streams")
        self.side_stream = side_stream

    def array(self, x):
        if self.name == "torch":
            return self.module.from_numpy(np.ascontiguousarray(x)).cuda()
        return self.module.asarray(x)

    def csr(self, a):
        if self.name == "cupy":
            sparse = pytest.importorskip("cupyx.scipy.sparse")
            return sparse.csr_matrix(a)
        if self.name == "torch":
            torch = self.module
            return torch.sparse_csr_tensor(
                torch.from_numpy(a.indptr.astype(np.int64)),
                torch.from_numpy(a.indices.astype(np.int64)), torch.from_numpy(a.data),
                size=a.shape).cuda()
        return a

    def numpy(self, x):
        if self.name == "torch":
            return x.cpu().numpy()
        return x if self.name == "numpy" else x.get()

    @contextlib.contextmanager
    def stream(self):
        if not self.side_stream:
            yield
        elif self.name == "torch":
            stream = self.module.cuda.Stream()
            stream.wait_stream(self.module.cuda.current_stream())
            with self.module.cuda.stream(stream):
                yield
            stream.synchronize()
        else:
            self.module.cuda.get_current_stream().synchronize()
            stream = self.module.cuda.Stream(non_blocking=True)
            with stream:
                yield
            stream.synchronize()


@pytest.fixture(params=LIBRARIES)
def library(request):
    return request.param


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("kind", ["CSR", "callable"])
@pytest.mark.parametrize("side_stream", [False, True], ids=["current", "side"])
def test_eigsh(rng, library, char, kind, side_stream):
    side = Side(library, side_stream)
    a = random_hermitian(rng, int(rng.integers(50, 400)), char)
    device = "cuda" if library == "numpy" else None
    if library == "numpy" and kind == "callable":
        pytest.skip("a function on a GPU gets arrays of cupy or torch")
    with side.stream():
        if kind == "CSR":
            matrix = side.csr(a)
        else:
            dense = side.array(a.toarray())
            matrix = quiver.LinearOperator(a.shape, lambda X: dense @ X, a.dtype, "cuda")
        v0 = side.array(rng.standard_normal((a.shape[0], 2)).astype(char))
        w, v = quiver.eigsh(matrix, 4, which="SA", v0=v0, device=device)
        if library != "numpy":
            assert type(v).__module__.startswith(library)
            w, v = side.numpy(w), side.numpy(v)
        else:
            w, v = Space("cupy", 0).numpy(w), Space("cupy", 0).numpy(v)
    check_pairs(a, w, v, wanted(spectrum(a), 4, "SA"))


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("side_stream", [False, True], ids=["current", "side"])
def test_products(rng, library, char, side_stream):
    if library == "numpy":
        pytest.skip("tested without a GPU")
    side = Side(library, side_stream)
    eps = np.finfo(char).eps
    a = rng.standard_normal((20000, 9)).astype(char)
    c = rng.standard_normal((9, 5)).astype(char)
    with side.stream():
        x, y = side.array(a), side.array(c)
        product = quiver.tsmm(x[:, 1:8], y[:7])
        gram = quiver.gram(x)
        q, r = quiver.qr(x)
        host = [side.numpy(z) for z in (product, gram, q, r)]
    np.testing.assert_allclose(host[0], a[:, 1:8] @ c[:7], atol=200 * eps)
    np.testing.assert_allclose(host[1], a.conj().T @ a, atol=200 * eps * 20000)
    np.testing.assert_allclose(host[2] @ host[3], a, atol=1000 * eps)


@pytest.mark.parametrize("char", "fdFD")
def test_linear_solve_and_batches(rng, library, char):
    if library == "numpy":
        pytest.skip("tested without a GPU")
    side = Side(library, False)
    a = random_hermitian(rng, 200, char)
    a = sp.csr_matrix(a @ a + 5 * sp.identity(200)).astype(char)
    b = rng.standard_normal((200, 3)).astype(char)
    x, info = quiver.cg(side.csr(a), side.array(b), rtol=1e-4)
    assert info == 0
    assert np.all(np.linalg.norm(a @ side.numpy(x) - b, axis=0) <= 2e-4 * np.linalg.norm(b, axis=0))
    small = rng.standard_normal((50, 6, 6)).astype(char) + 6 * np.eye(6, dtype=char)
    right = rng.standard_normal((50, 6)).astype(char)
    got = side.numpy(quiver.solve(side.array(small), side.array(right)))
    np.testing.assert_allclose(got, np.linalg.solve(small, right[..., None])[..., 0],
                               atol=1e4 * np.finfo(char).eps)


def test_no_copies_and_the_callers_stream(rng, library):
    if library == "numpy":
        pytest.skip("the host has no streams")
    side = Side(library, True)
    with side.stream():
        x = side.array(rng.standard_normal((1000, 4)))
        space = quiver._arrays.space_of(x)
        block = space.block(x, "d", "x")
        assert block is x if library == "cupy" else block.data_ptr() == x.data_ptr()
        current = (side.module.cuda.current_stream().cuda_stream if library == "torch"
                   else side.module.cuda.get_current_stream().ptr)
        assert space.stream == current != 0
        assert space.context is quiver._arrays.space_of(x).context
        out = side.array(np.zeros((4, 4)))
        assert quiver.gram(x, out=out) is out


def test_work_is_ordered_on_the_stream(rng, library):
    """A long kernel precedes the call and a read follows it, without synchronisation in between."""
    if library == "numpy":
        pytest.skip("the host has no streams")
    side = Side(library, True)
    with side.stream():
        big = side.array(rng.standard_normal((3000, 3000)) / 60)
        x = side.array(rng.standard_normal((3000, 4)))
        for _ in range(30):
            x = big @ x
        gram = quiver.gram(x)
        doubled = gram + gram
        host = side.numpy(doubled), side.numpy(x)
    np.testing.assert_allclose(host[0], 2 * host[1].T @ host[1], rtol=1e-9)


def test_stream_argument(rng, library):
    if library == "numpy":
        pytest.skip("the host has no streams")
    side = Side(library, False)
    stream = side.module.cuda.Stream()
    x = side.array(rng.standard_normal((500, 3)))
    (side.module.cuda if library == "torch" else side.module.cuda.Device(0)).synchronize()
    gram = quiver.gram(x, stream=stream)
    stream.synchronize()
    np.testing.assert_allclose(side.numpy(gram), side.numpy(x).T @ side.numpy(x), atol=1e-10)


def test_a_graph_captures_a_call(rng):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    x = torch.randn(10000, 8, dtype=torch.float64, device="cuda")
    c = torch.randn(8, 8, dtype=torch.float64, device="cuda")
    y = torch.empty_like(x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            quiver.tsmm(x, c, out=y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        quiver.tsmm(x, c, out=y)
    y.zero_()
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(y, x @ c)


def test_arrays_of_two_places_are_refused(rng):
    cupy = pytest.importorskip("cupy")
    x = cupy.ones((30, 2))
    a = random_hermitian(rng, 30, "d")
    with pytest.raises(ValueError, match="device='cpu', but an array is on cuda"):
        quiver.eigsh(a, 2, v0=x, device="cpu")


def test_a_sparse_matrix_stays_on_its_device(rng):
    pytest.importorskip("cupy")
    a = quiver.SparseMatrix(random_hermitian(rng, 30, "d"), device="cuda")
    with pytest.raises(ValueError, match="device='cpu', but the SparseMatrix is on cuda:0"):
        quiver.eigsh(a, 2, device="cpu")
