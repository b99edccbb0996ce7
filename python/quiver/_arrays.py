# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of NumPy, CuPy, PyTorch and other DLPack producers: layouts, streams, results.

A `Space` is the place of one call: a library of arrays, a device and a stream. Arrays that are
already in the space, with rows that are contiguous in memory, are passed on without a copy.
"""

from __future__ import annotations

import atexit
import contextlib
import operator
import sys
import threading
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from . import _core

#: The four scalars, as NumPy's dtype characters.
SCALARS = "fdFD"
#: 'numpy', 'cupy' or 'torch' for the types of arrays met so far.
_libraries: dict[type, str] = {}
_torch_dtypes: dict[Any, np.dtype] = {}
_contexts: dict[tuple[int, int, int], Any] = {}
_owners: list[Any] = []
_contexts_lock = threading.Lock()

# A Context frees its memory in the order of its stream. At exit the Contexts are freed first, while
# the owners of their streams still work.
atexit.register(_contexts.clear)


def scalar_of(*dtypes: Any) -> str:
    """The scalar for computations with arrays of these dtypes: 'f', 'd', 'F' or 'D'.

    >>> scalar_of(np.float32, np.complex64), scalar_of(np.int32), scalar_of()
    ('F', 'd', 'd')
    """
    first = dtypes[0] if dtypes else None
    if isinstance(first, np.dtype) and first.char in SCALARS:
        for d in dtypes:
            if d is not first:
                break
        else:
            return str(first.char)
    known = [np.dtype(d) for d in dtypes if d is not None]
    if not known:
        return "d"
    if known[0].char in SCALARS and all(d == known[0] for d in known):
        return str(known[0].char)
    common = np.result_type(*known)
    if common.kind in "biu":
        return "d"
    if common.kind == "f":
        return "f" if common.itemsize <= 4 else "d"
    if common.kind == "c":
        return "F" if common.itemsize <= 8 else "D"
    raise TypeError(f"arrays of dtype {common} are not supported; use real or complex numbers")


def real_scalar(char: str) -> str:
    """The real scalar of the same precision."""
    return char.lower()


def whole_number(value: Any, name: str) -> int:
    """An integer of any library. Refuses 2.5 and "3", which int() would take."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: an integer is expected") from None


def number_from_zero(value: Any, name: str) -> float:
    """A finite number that is not negative: a tolerance or a time."""
    number = float(value)
    if not 0 <= number < float("inf"):
        raise ValueError(f"{name}={value!r}: a finite number from 0 on is expected")
    return number


def library_name(x: Any) -> str:
    """'numpy', 'cupy' or 'torch'; 'dlpack' for an array of another library; '' if x is no array."""
    kind = type(x)
    found = _libraries.get(kind)
    if found is not None:
        return found
    root = kind.__module__.partition(".")[0]
    if root in ("numpy", "cupy", "torch"):
        _libraries[kind] = root
        return root
    if hasattr(x, "__dlpack__"):
        return "dlpack"
    return ""


def dtype_of(x: Any) -> np.dtype:
    """The NumPy dtype of an array of any library."""
    if type(x) is not np.ndarray and library_name(x) == "torch":
        found = _torch_dtypes.get(x.dtype)
        if found is None:
            # "torch.float32": NumPy has the same names.
            name = str(x.dtype).partition(".")[2]
            if name == "bfloat16" or not hasattr(np, name.replace("bool", "bool_")):
                raise TypeError(f"tensors of dtype {x.dtype} are not supported")
            found = _torch_dtypes[x.dtype] = np.dtype(name)
        return found
    return np.dtype(x.dtype)


def sparse_source(a: Any) -> str | None:
    """'scipy', 'cupyx' or 'torch' for a sparse matrix of that library; None for anything else."""
    root = library_name(a)
    if root == "torch":
        return "torch" if getattr(a, "layout", None) in _torch().sparse_layouts else None
    if root in ("numpy", "cupy"):
        return None
    root = type(a).__module__.partition(".")[0]
    if root == "scipy":
        import scipy.sparse

        return "scipy" if scipy.sparse.issparse(a) else None
    if root == "cupyx":
        return "cupyx" if hasattr(a, "tocsr") else None
    return None


class _Torch:
    """Objects of torch that calls with tensors need, looked up once."""

    def __init__(self) -> None:
        import torch
        import torch.utils.dlpack

        self.tensor = torch.Tensor
        self.empty = torch.empty
        self.strided = torch.strided
        #: Makes a DLPack capsule. It neither orders streams nor checks for gradients and for
        #: elements that are conjugated or negated on access.
        self.to_capsule = torch.utils.dlpack.to_dlpack
        self.sparse_layouts = {torch.sparse_csr, torch.sparse_csc, torch.sparse_coo,
                               torch.sparse_bsr, torch.sparse_bsc}
        self.dtypes = {"f": torch.float32, "d": torch.float64, "F": torch.complex64,
                       "D": torch.complex128, "i": torch.int32, "q": torch.int64}
        self.chars = {dtype: char for char, dtype in self.dtypes.items()}
        #: The results of template().
        self.templates: dict[tuple[str, int], Any] = {}
        self.host = Space("torch")
        #: The spaces that space_of() returned, by device and address of the stream.
        self.spaces: dict[tuple[int, int], Space] = {}
        #: The address of the current stream of a device. The private function of torch takes
        #: 0.1 us, the public one 1.7 us.
        self.current_stream: Callable[[int], int] = getattr(
            torch._C, "_cuda_getCurrentRawStream",
            lambda device: torch.cuda.current_stream(device).cuda_stream)

    def space_of(self, x: Any) -> Space | None:
        """The space of a tensor on the current stream of its device; None if the tensor is neither
        in host memory nor on an NVIDIA GPU."""
        if x.is_cpu:
            return self.host
        if not x.is_cuda:
            return None
        device = x.get_device()
        key = device, self.current_stream(device)
        found = self.spaces.get(key)
        if found is None:
            found = self.spaces[key] = Space("torch", device)
        return found

    def template(self, char: str, device: int) -> Any:
        """An empty tensor on a device (-1: host). Its method new_empty() is faster than
        torch.empty()."""
        found = self.templates.get((char, device))
        if found is None:
            found = self.templates[char, device] = self.empty(
                0, dtype=self.dtypes[char], device=_torch_device(device))
        return found

    def is_plain(self, x: Any) -> bool:
        """True if a result may be written to the memory of a tensor: the tensor is dense and of no
        subclass, needs no gradient, and its elements are not conjugated or negated on access."""
        return type(x) is self.tensor and x.layout is self.strided and not (
            x.requires_grad or x.is_conj() or x.is_neg())


_torch_found: _Torch | None = None


def _torch() -> _Torch:
    global _torch_found
    if _torch_found is None:
        _torch_found = _Torch()
    return _torch_found


def stream_pointer(stream: Any) -> int:
    """The address of a stream, which is an integer, a stream of torch or cupy, or an object with
    `__cuda_stream__`."""
    if hasattr(stream, "__cuda_stream__"):
        pair = stream.__cuda_stream__
        return int((pair() if callable(pair) else pair)[1])
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    if isinstance(stream, int):
        return stream
    raise TypeError("stream: an integer, a stream of torch or cupy, or an object with "
                    "__cuda_stream__ is expected")


class _Memory:
    """The memory of an array, without the mark that it is read-only."""

    def __init__(self, x: np.ndarray) -> None:
        self.__array_interface__ = {**x.__array_interface__, "data": (x.ctypes.data, False)}
        self.owner = x


def _writable(x: np.ndarray) -> np.ndarray:
    """`x`, or a view of a read-only `x` that torch takes without a warning. The library does not
    write to its arguments."""
    return x if x.flags.writeable else np.asarray(_Memory(x))


class Space:
    """A library of arrays ('numpy', 'cupy', 'torch'), a device (-1: host), a CUDA stream, and a
    communicator of mpi4py or None."""

    def __init__(self, library: str = "numpy", device: int = -1, stream: Any = None,
                 comm: Any = None) -> None:
        self.library = library
        self.device = device
        self.comm = comm
        if device < 0:
            if stream is not None:
                raise ValueError("stream: the arrays are in host memory, where there are no streams")
            self.stream = 0
            self._owner = None
            self._given = False
            return
        self._given = stream is not None
        self._owner = stream if self._given else self._current_stream()
        self.stream = stream_pointer(self._owner)

    def _current_stream(self) -> Any:
        if self.library == "torch":
            import torch

            return torch.cuda.current_stream(self.device)
        import cupy

        with cupy.cuda.Device(self.device):
            return cupy.cuda.get_current_stream()

    @property
    def context(self) -> Any:
        """The Context of this device, stream and communicator; the process has one for each."""
        key = (self.device, self.stream, -1 if self.comm is None else int(self.comm.py2f()))
        found = _contexts.get(key)
        if found is None:
            with _contexts_lock:
                found = _contexts.get(key)
                if found is None:
                    found = _core.make_context(self.device, self.stream, 0, self._comm_address())
                    # The handles in the key stay valid as long as their owners live.
                    _owners.append((self.comm, self._owner))
                    _contexts[key] = found
        return found

    def _comm_address(self) -> int:
        if self.comm is None:
            return 0
        from mpi4py import MPI

        return int(MPI._addressof(self.comm))

    def sum(self, value: Any) -> Any:
        """The sum of a number or an array over the ranks."""
        return value if self.comm is None else self.comm.allreduce(value)

    def with_comm(self, comm: Any) -> Space:
        """This space with a communicator."""
        if comm is None or comm is self.comm:
            return self
        if not hasattr(comm, "py2f"):
            raise TypeError("comm: a communicator of mpi4py is expected")
        space = Space.__new__(Space)
        space.__dict__.update(self.__dict__, comm=comm)
        return space

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Makes the device and the stream current, so that functions of the caller use them."""
        if self.device < 0:
            yield
        elif self.library == "torch":
            import torch

            with torch.cuda.device(self.device):
                if self._given:
                    with torch.cuda.stream(torch.cuda.ExternalStream(self.stream)):
                        yield
                else:
                    yield
        else:
            import cupy

            with cupy.cuda.Device(self.device):
                if self._given:
                    with cupy.cuda.ExternalStream(self.stream):
                        yield
                else:
                    yield

    def module(self) -> Any:
        """numpy, cupy or torch."""
        return __import__(self.library)

    def dtype(self, char: str) -> Any:
        if self.library == "numpy":
            return np.dtype(char)
        if self.library == "torch":
            return _torch().dtypes[char]
        return np.dtype(char)

    def empty(self, shape: Any, char: str) -> Any:
        """A new array, not initialised, with contiguous rows."""
        if self.library == "numpy":
            return np.empty(shape, char)
        if self.library == "torch":
            # new_empty(shape) with a tuple takes 0.5 us more.
            return _torch().template(char, self.device).new_empty(*shape)
        return self.module().empty(shape, dtype=char)

    def zeros(self, shape: Any, char: str) -> Any:
        out = self.empty(shape, char)
        out[...] = 0
        return out

    def from_numpy(self, x: np.ndarray) -> Any:
        """A copy in this space, or the array itself if the space is NumPy's."""
        if self.library == "numpy":
            return x
        if self.library == "torch":
            import torch

            return torch.from_numpy(_writable(np.ascontiguousarray(x))).to(_torch_device(self.device))
        return self.module().asarray(x)

    def array(self, x: Any, char: str, name: str) -> Any:
        """Converts `x` to an array of this space and scalar; returns `x` itself if it is one."""
        if type(x) is np.ndarray and self.library == "numpy" and x.dtype.char == char \
                and x.dtype.isnative:
            return x
        if self.library == "torch" and self._is_ready(x, char):
            return x
        if isinstance(x, np.ma.MaskedArray):
            raise ValueError(f"{name}: a masked array has entries without a value; fill them first")
        if sparse_source(x) is not None:
            raise TypeError(f"{name} is a sparse matrix; an array is expected: pass {name}.toarray() "
                            "(to_dense() of torch)")
        library = library_name(x)
        if library == "" or (library == "dlpack" and self.device < 0):
            x = np.from_dlpack(x) if library else np.asarray(x)
            library = "numpy"
        if library == "dlpack":
            x = self._import(x)
        elif library != self.library or (library == "torch" and _device_of(x) != self.device):
            x = self._convert(x, library, name)
        if self.library == "numpy":
            x = np.asarray(x)
        if char in "fd" and dtype_of(x).kind == "c":
            raise ValueError(f"{name} is complex, but the other arguments are real")
        if self.library == "torch":
            x = x.detach()
            return x.resolve_conj().resolve_neg().to(self.dtype(char)) \
                if x.dtype != self.dtype(char) or x.is_conj() or x.is_neg() else x
        if x.dtype != np.dtype(char) or not x.dtype.isnative:
            x = x.astype(char)
        return x

    def _is_ready(self, x: Any, char: str) -> bool:
        """True for a tensor that array() returns as it is."""
        torch = _torch()
        # A real tensor is never conjugated.
        return (type(x) is torch.tensor and x.dtype is torch.dtypes[char]
                and x.layout is torch.strided
                and (x.is_cpu if self.device < 0 else x.is_cuda and x.get_device() == self.device)
                and not (x.requires_grad or x.is_neg() or (char in "FD" and x.is_conj())))

    def _import(self, x: Any) -> Any:
        """Converts an array of another library to one of this space without a copy."""
        if self.library == "torch":
            import torch

            return torch.from_dlpack(x)
        return self.module().from_dlpack(x)

    def _convert(self, x: Any, library: str, name: str) -> Any:
        """Converts an array of another library; copies host memory to the device of this space."""
        device = _device_of(x)
        if device >= 0 and device != self.device:
            raise ValueError(f"{name} is on {_place(device)}, the other arrays are on "
                             f"{_place(self.device)}")
        if device >= 0:
            return self._import(x)
        if library == "torch":
            return self.from_numpy(x.detach().resolve_conj().resolve_neg().numpy())
        return self.from_numpy(np.asarray(x))

    def block(self, x: Any, char: str, name: str, rows: int | None = None) -> Any:
        """`x` as a matrix (or vector) with contiguous rows; a copy only if it has another layout."""
        return self.with_block_layout(self.array(x, char, name), name, rows)

    def with_block_layout(self, x: Any, name: str, rows: int | None = None) -> Any:
        """An array of this space as a matrix (or vector) with contiguous rows; a copy only if it
        has another layout."""
        if x.ndim not in (1, 2):
            raise ValueError(f"{name} has {x.ndim} dimensions; a vector or a matrix is expected")
        if rows is not None and x.shape[0] != rows:
            raise ValueError(f"{name} has {x.shape[0]} rows, {rows} are expected")
        return x if self.has_block_layout(x) else self.contiguous(x)

    def contiguous(self, x: Any) -> Any:
        if self.library == "torch":
            return x.contiguous()
        return self.module().ascontiguousarray(x)

    def has_block_layout(self, x: Any) -> bool:
        """True if each row is contiguous and the rows ascend in memory without overlap."""
        if self.library == "numpy" and x.flags.carray:
            return True
        if self.library == "torch":
            if x.is_contiguous():
                return True
            strides, size = x.stride(), 1
        else:
            strides, size = x.strides, x.itemsize
            if self.library == "numpy" and not x.flags.aligned:
                return False
        if 0 in x.shape:
            return bool(self.library != "torch" and x.flags.c_contiguous)
        columns = x.shape[1] if x.ndim == 2 else 1
        if columns > 1 and strides[1] != size:
            return False
        return x.shape[0] <= 1 or (strides[0] % size == 0 and strides[0] >= columns * size)

    def output(self, out: Any, shape: tuple[int, ...], char: str, name: str) -> Any:
        """The array for a result: `out` after its checks, or a new array if `out` is None."""
        if out is None:
            return self.empty(shape, char)
        if type(out) is np.ndarray and self.library == "numpy":
            pass
        elif self.library == "torch" and self._is_ready(out, char) and out.shape == shape \
                and out.is_contiguous():
            return out
        elif library_name(out) != self.library or _device_of(out) != self.device:
            raise ValueError(f"{name} belongs to another library or device than the arguments")
        if tuple(out.shape) != shape or out.dtype != self.dtype(char):
            raise ValueError(f"{name} has shape {tuple(out.shape)} and dtype {out.dtype}; "
                             f"{tuple(shape)} and {np.dtype(char)} are expected")
        if not self.has_block_layout(out):
            raise ValueError(f"{name}: the rows must be contiguous in memory")
        if self.library == "numpy" and not out.flags.writeable:
            raise ValueError(f"{name} is read-only")
        # On a GPU the __dlpack__ of a subclass accepts or refuses its tensors.
        if self.library == "torch" and not _torch().is_plain(out) \
                and (self.device < 0 or type(out) is _torch().tensor):
            raise ValueError(f"{name}: a result is not written to a tensor that requires a gradient, is "
                             "a conjugated or negated view, or belongs to a subclass of torch.Tensor")
        return out

    def raw(self, x: Any) -> Any:
        """Converts an array of this space to the form that the extension module accepts: a NumPy
        array or a DLPack capsule. A capsule is valid for one call, on this stream."""
        return self.raws(x)[0]

    def raws(self, *arrays: Any) -> Sequence[Any]:
        """Converts several arrays as raw() does, in less time than one call for each.

        `__dlpack__` makes this stream wait for the current stream of the array's library. If both
        are the same stream, there is nothing to wait for, and torch's to_dlpack() makes the capsule
        in a fraction of the time."""
        if self.library == "numpy":
            return arrays
        if self.library == "torch":
            torch = _torch()
            if self.device < 0 or torch.current_stream(self.device) == self.stream:
                kind, to_capsule = torch.tensor, torch.to_capsule
                return [to_capsule(x) if type(x) is kind else self._exported(x) for x in arrays]
        return [self._exported(x) for x in arrays]

    def _exported(self, x: Any) -> Any:
        """Exports an array of this space by a method of its library; on a GPU `__dlpack__` orders the
        streams."""
        return x.numpy() if self.device < 0 else x.__dlpack__(stream=self.stream or 1)

    def view(self, raw: Any) -> Any:
        """The library's array for an argument that the extension module passes to a callback."""
        if self.library == "numpy":
            return raw
        if self.device < 0:
            import torch

            return torch.from_numpy(raw)
        return self._import(raw)

    def numpy(self, x: Any) -> np.ndarray:
        """A copy in host memory, or the array itself if it is on the host."""
        if self.library == "torch":
            return np.asarray(x.cpu())
        if self.library == "cupy":
            return np.asarray(x.get())
        return np.asarray(x)


_host = Space()


def ready_arrays(*arrays: Any) -> tuple[Space, str] | None:
    """The space and the scalar of arrays that need no conversion: all are NumPy arrays, or all are
    plain tensors on one device, and all have the same one of the four dtypes. Otherwise None. An
    argument None after the first one is ignored. This is the fast path of most calls, which use the
    caller's current stream."""
    first = arrays[0]
    kind, torch = type(first), _torch_found
    if kind is np.ndarray:
        dtype = first.dtype
        for x in arrays:
            if x is not None and (type(x) is not kind or x.dtype is not dtype):
                return None
        return (_host, dtype.char) if dtype.char in SCALARS and dtype.isnative else None
    if torch is None or kind is not torch.tensor:
        return None
    char = torch.chars.get(first.dtype)
    space = None if char is None or char not in SCALARS else torch.space_of(first)
    if char is None or space is None:
        return None
    last = None
    for x in arrays:
        if x is not None and x is not last and not space._is_ready(x, char):
            return None
        last = x
    return space, char


def _device_of(x: Any) -> int:
    library = library_name(x)
    if library == "torch":
        if x.is_cpu:
            return -1
        if not x.is_cuda:
            raise ValueError(f"tensors on {x.device} are not supported")
        return int(x.get_device())
    if library == "cupy":
        return int(x.device.id)
    if library == "dlpack":
        kind, index = x.__dlpack_device__()
        return -1 if int(kind) in (1, 3) else int(index)
    return -1


def _torch_device(device: int) -> str:
    return "cpu" if device < 0 else f"cuda:{device}"


def _place(device: int) -> str:
    return "the host" if device < 0 else f"cuda:{device}"


def gpu_library() -> str:
    """The default library for arrays on a GPU: one that is imported, else one that is installed."""
    for name in ("cupy", "torch"):
        if name in sys.modules:
            return name
    for name in ("cupy", "torch"):
        try:
            __import__(name)
            return name
        except ImportError:
            continue
    raise ValueError("device: arrays on a GPU need cupy or torch")


def parse_device(device: Any) -> int | None:
    """The number of the GPU, -1 for the host, or None, for an argument `device`."""
    if device is None:
        return None
    if isinstance(device, int):
        return device
    text = str(device)
    if text in ("cpu", "host"):
        return -1
    if text == "cuda":
        return 0
    if text.startswith("cuda:") and text[5:].isdigit():
        return int(text[5:])
    raise ValueError(f"device={device!r}: None, 'cpu', 'cuda', 'cuda:N' or N is expected")


def space_of(*arrays: Any, device: Any = None, stream: Any = None) -> Space:
    """The space of the first array, else NumPy's. `device` may move arrays of the host to a GPU,
    but not arrays of a GPU to another place."""
    if device is None and stream is None and arrays:
        if type(arrays[0]) is np.ndarray:
            return _host
        if _torch_found is not None and type(arrays[0]) is _torch_found.tensor:
            found = _torch_found.space_of(arrays[0])
            if found is not None:
                return found
    number = parse_device(device)
    for x in arrays:
        if x is None or library_name(x) == "":
            continue
        here = _device_of(x)
        library = library_name(x)
        if number is not None and number != here:
            if here >= 0:
                raise ValueError(f"device={device!r}, but an array is on {_place(here)}")
            return Space(gpu_library() if library != "torch" else "torch", number, stream)
        if library == "dlpack":
            library = "numpy" if here < 0 else gpu_library()
        return Space(library, here, stream)
    if number is not None and number >= 0:
        return Space(gpu_library(), number, stream)
    return Space(stream=stream)
