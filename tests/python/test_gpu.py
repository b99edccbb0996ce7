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
    torch = cuda_torch()
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


def cuda_torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    return torch


def delay(torch):
    """Enqueues work of some milliseconds on the current stream."""
    x = torch.full((2000, 2000), 1e-3, device="cuda")
    for _ in range(20):
        x = x @ x


def exports(torch, monkeypatch):
    """Returns a list to which each later call of torch.Tensor.__dlpack__ appends its stream."""
    streams = []
    original = torch.Tensor.__dlpack__

    def export(self, *args, **options):
        streams.append(options.get("stream"))
        return original(self, *args, **options)

    monkeypatch.setattr(torch.Tensor, "__dlpack__", export)
    return streams


@pytest.mark.parametrize("side_stream", [False, True], ids=["current", "side"])
def test_the_current_stream_needs_no_export(monkeypatch, side_stream):
    torch = cuda_torch()
    side = Side("torch", side_stream)
    streams = exports(torch, monkeypatch)
    with side.stream():
        x = torch.zeros(1000, 6, dtype=torch.float64, device="cuda")[:, 1:5]
        c = torch.eye(4, dtype=torch.float64, device="cuda")
        delay(torch)
        x.fill_(2.0)
        gram, y = quiver.tsmttsm(x, x), quiver.tsmm(x, c, alpha=3.0)
        w, g = quiver.tsmm_gram(x, c)
        x.zero_()
        assert quiver._arrays.space_of(x).stream == torch.cuda.current_stream().cuda_stream
        host = [side.numpy(z) for z in (gram, y, w, g)]
    assert streams == []
    for got, value in zip(host, (4000.0, 6.0, 2.0, 4000.0), strict=True):
        assert np.all(got == value)


def test_another_stream_waits_for_the_current_one(monkeypatch):
    torch = cuda_torch()
    other = torch.cuda.Stream()
    streams = exports(torch, monkeypatch)
    x = torch.zeros(1000, 4, dtype=torch.float64, device="cuda")
    quiver.gram(x, stream=other)  # the first call on a stream may synchronise the device
    streams.clear()
    delay(torch)
    x.fill_(2.0)
    gram = quiver.gram(x, stream=other)
    other.synchronize()
    assert streams == [other.cuda_stream] * 3
    assert bool((gram == 4000).all())
    # A space that belongs to one stream orders the streams while another one is current.
    space = quiver._arrays.space_of(x)
    streams.clear()
    with torch.cuda.stream(other):
        space.raw(x)
    assert streams == [space.stream or 1]


def test_spaces_follow_the_current_stream():
    """Streams of torch come from a pool: a new one has the address of a former one."""
    torch = cuda_torch()
    x = torch.zeros(1000, 4, dtype=torch.float64, device="cuda")
    known, repeated = {}, 0
    for i in range(200):
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        address = stream.cuda_stream
        if address not in known and len(known) == 2:
            continue
        with torch.cuda.stream(stream):
            delay(torch)
            x.fill_(float(i + 1))
            gram = quiver.gram(x)
            space = quiver._arrays.space_of(x)
        stream.synchronize()
        assert space.stream == address
        assert bool((gram == 1000 * (i + 1)**2).all())
        repeated += address in known
        assert known.setdefault(address, space) is space
    assert len(known) == 2
    assert repeated > 0
    assert quiver._arrays.space_of(x).stream == torch.cuda.current_stream().cuda_stream
    del known, space
    assert bool((quiver.gram(x) == gram).all())


def test_results_are_not_written_to_views_with_other_values():
    torch = cuda_torch()
    x = torch.ones(20, 3, dtype=torch.complex128, device="cuda")
    out = torch.zeros(3, 3, dtype=torch.complex128, device="cuda")
    for bad in (out.clone().requires_grad_(), out.conj()):
        with pytest.raises(ValueError, match="out: a result is not written to a tensor that requires"):
            quiver.gram(x, out=bad)
        assert not bool(bad.detach().any())
    negated = out[:1, :1].conj().imag
    assert negated.is_neg()
    with pytest.raises(ValueError, match="conjugated or negated view"):
        quiver.gram(x.real[:, :1], out=negated)
    # Arguments that are conjugated or negated on access are read with these values.
    z = torch.complex(torch.ones(20, 2), torch.full((20, 2), 2.0)).to(x).cuda()
    for view in (z.conj(), z.conj().imag, z.clone().requires_grad_(),
                 torch.nn.Parameter(z)):
        plain = view.detach().resolve_conj().resolve_neg()
        torch.testing.assert_close(quiver.gram(view), plain.mH @ plain)


def test_a_tensor_on_a_device_that_is_not_current():
    torch = cuda_torch()
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    x = torch.full((1000, 4), 2.0, dtype=torch.float64, device="cuda:1")
    assert torch.cuda.current_device() == 0
    gram = quiver.gram(x)
    assert gram.device == x.device
    assert bool((gram == 4000).all())
    with pytest.raises(ValueError, match="B is on cuda:0, the other arrays are on cuda:1"):
        quiver.tsmttsm(x, x.to("cuda:0"))


def test_arrays_of_two_places_are_refused(rng):
    cupy = pytest.importorskip("cupy")
    x = cupy.ones((30, 2))
    a = random_hermitian(rng, 30, "d")
    with pytest.raises(ValueError, match="device='cpu', but an array is on cuda"):
        quiver.eigsh(a, 2, v0=x, device="cpu")


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("side_stream", [False, True], ids=["current", "side"])
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_replaced_values(rng, library, char, side_stream):
    side = Side(library, side_stream)
    a = random_hermitian(rng, 300, char)
    other = a.copy()
    other.data = (3 * a.data + 1).astype(char)
    x = rng.standard_normal((300, 4)).astype(char)
    with side.stream():
        matrix = quiver.SparseMatrix(side.csr(a))
        for values in (side.array(other.data), other.data):
            matrix.replace_values(values)
            y = side.numpy(matrix @ side.array(x))
            expected = other.astype("D") @ x
            bound = 1e3 * np.finfo(char).eps * abs(expected).max()
            np.testing.assert_allclose(y, expected, rtol=0, atol=bound)
            matrix.replace_values(side.array(a.data))


def test_a_sparse_matrix_stays_on_its_device(rng):
    pytest.importorskip("cupy")
    a = quiver.SparseMatrix(random_hermitian(rng, 30, "d"), device="cuda")
    with pytest.raises(ValueError, match="device='cpu', but the SparseMatrix is on cuda:0"):
        quiver.eigsh(a, 2, device="cpu")


def test_spectral_embedding(rng):
    x = np.concatenate([rng.standard_normal((3000, 2)) + 100 * c for c in range(3)])
    graph = quiver.nearest_neighbours(x, 8)
    expected = quiver.spectral_embedding(graph, 6)
    result = quiver.spectral_embedding(graph, 6, device="cuda")
    assert result.components == expected.components
    np.testing.assert_array_equal(result.labels, expected.labels)
    np.testing.assert_allclose(result.eigenvalues, expected.eigenvalues, atol=1e-9)
    assert np.asarray(result.vectors.get() if hasattr(result.vectors, "get")
                      else result.vectors.cpu()).shape == expected.vectors.shape


@pytest.mark.parametrize("char", "fd")
@pytest.mark.parametrize("side_stream", [False, True], ids=["current", "side"])
def test_kmeans(rng, library, char, side_stream):
    side = Side(library, side_stream)
    middles = rng.uniform(-8, 8, (7, 5))
    x = (middles[np.arange(20000) % 7] + 0.05 * rng.standard_normal((20000, 5))).astype(char)
    expected = quiver.kmeans(x, 7, init=x[:7])
    with side.stream():
        result = quiver.kmeans(side.array(x), 7, init=side.array(x[:7]),
                               device="cuda" if library == "numpy" else None)
        space = Space("cupy", 0) if library == "numpy" else None
        labels, centers = (space.numpy(z) if space else side.numpy(z)
                           for z in (result.labels, result.centers))
    np.testing.assert_array_equal(labels, expected.labels)
    np.testing.assert_allclose(centers, expected.centers, atol=1000 * np.finfo(char).eps)
    np.testing.assert_allclose(result.inertia, expected.inertia, rtol=1e-4)


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("side_stream", [False, True], ids=["current", "side"])
def test_singular_values(rng, library, char, side_stream):
    """svd, pca and svds on the device agree with NumPy."""
    side = Side(library, side_stream)
    eps = np.finfo(char).eps
    device = "cuda" if library == "numpy" else None
    x = rng.standard_normal((5000, 7)) * np.logspace(0, -6, 7) @ rng.standard_normal((7, 7))
    a = sp.random(900, 600, 0.01, format="csr", random_state=rng)
    if char in "FD":
        x = x * np.exp(1j * rng.standard_normal((5000, 1)))
        a = (a * np.exp(0.3j)).tocsr()
    x, a = np.ascontiguousarray(x, dtype=char), a.astype(char)
    with side.stream():
        block, matrix = side.array(x), side.csr(a)
        triplets = quiver.svd(block, device=device)
        found = quiver.svds(matrix, 5, device=device)
        points = quiver.pca(block, 3, scores=True, device=device) if char in "fd" else None
        space = Space("cupy", 0) if library == "numpy" else None

        def host(z):
            return space.numpy(z) if space else side.numpy(z)

        u, s, vh = (host(z) for z in triplets)
        values = host(found[1])
        if points is not None:
            variance, scores = host(points.explained_variance), host(points.scores)
    expected = np.linalg.svd(x.astype("D"), compute_uv=False)
    np.testing.assert_allclose(s, expected, atol=60 * eps * expected[0])
    np.testing.assert_allclose(u * s @ vh, x, atol=100 * eps * expected[0])
    np.testing.assert_allclose(u.conj().T @ u, np.eye(7), atol=100 * eps)
    exact = np.linalg.svd(a.toarray().astype("D"), compute_uv=False)
    np.testing.assert_allclose(values, exact[:5], atol=100 * eps * exact[0])
    if points is not None:
        centred = x.astype("d") - x.astype("d").mean(axis=0)
        exact = np.linalg.svd(centred, compute_uv=False)**2 / (len(x) - 1)
        np.testing.assert_allclose(variance, exact[:3], atol=60 * eps * exact[0])
        # Rounding changes each singular value by a multiple of eps times the largest one.
        bound = 200 * eps * np.sqrt(exact[0] * exact[:3])
        assert (np.abs(scores.var(axis=0, ddof=1) - variance) <= bound).all()
