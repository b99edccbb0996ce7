# SPDX-License-Identifier: BSD-3-Clause
"""Matrices and functions as operators of the library."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import numpy as np

from . import _core
from ._arrays import (SCALARS, Space, _device_of, _place, dtype_of, library_name, parse_device,
                      scalar_of, space_of, sparse_source)


class LinearOperator:
    """A square operator given by a function that multiplies whole blocks.

    Parameters
    ----------
    shape : (int, int)
        (n, n); with a communicator, this rank's number of rows and n.
    matmat : callable
        ``matmat(X) -> Y`` or ``matmat(X, out)``, which writes to ``out``. X and out are n x b, for
        any b; the function must not change X. A function has the second form if its second
        positional parameter has no default or is called ``out``.
    dtype : dtype, optional
        The scalar of X and Y; float64 if not given.
    device : optional
        The place of X and out: 'cpu' (default), 'cuda', 'cuda:N'. On a GPU they are arrays of cupy
        or torch.

    Examples
    --------
    >>> import numpy as np, quiver
    >>> diagonal = np.arange(1.0, 101.0)
    >>> A = quiver.LinearOperator((100, 100), lambda X: diagonal[:, None] * X)
    >>> w = quiver.eigsh(A, k=3, which='SA', return_eigenvectors=False)
    >>> w.round(6).tolist()
    [1.0, 2.0, 3.0]
    """

    def __init__(self, shape: tuple[int, int], matmat: Callable[..., Any], dtype: Any = None,
                 device: Any = None) -> None:
        if np.shape(shape) != (2,):
            raise ValueError(f"LinearOperator: the shape is a pair (n, n), not {shape!r}")
        self.shape = (int(shape[0]), int(shape[1]))
        if self.shape[0] >= self.shape[1]:  # fewer rows: those of one of several ranks
            require_square(self.shape, "LinearOperator")
        if not callable(matmat):
            raise TypeError(f"LinearOperator: matmat is a function, not {type(matmat).__name__}")
        self.matmat = matmat
        self.dtype = np.dtype(scalar_of(dtype))
        self.device = device

    def __matmul__(self, x: Any) -> Any:
        return self.matmat(x)


class SparseMatrix:
    """A sparse matrix that is set up once and used in many calls.

    Parameters
    ----------
    A : sparse matrix
        scipy.sparse, cupyx.scipy.sparse or a sparse tensor of torch, in any format. Solvers need a
        square matrix; products also take rectangular ones.
    dtype : dtype, optional
        float32, float64, complex64 or complex128; the dtype of A if not given.
    device, stream : optional
        The place in which the matrix is stored; that of A if not given.
    comm : optional
        A communicator of mpi4py. A then has the rows of this rank and all columns. X has the
        distribution of the rows if the matrix is square; otherwise its rows are shared evenly, and
        the first ranks have one more if the number of ranks does not divide them.
    partition : {'rows', 'graph', 'auto'} or SparseMatrix
        The rows that each rank stores and multiplies, of a square matrix with `comm`. 'rows': its
        own. 'graph': a part of the graph of the matrix (SCOTCH), so that ranks exchange fewer rows
        in a product. 'auto': the graph where it pays. A SparseMatrix: its partition, which two
        matrices of one problem must share. X, Y and results keep the caller's distribution: a
        solve moves its blocks once, but `A @ X` in each call.

    Attributes
    ----------
    partition : str
        'graph' if rows have moved, else 'rows'.
    halo : int
        The rows of X that this rank receives from others in a product.
    H : SparseMatrix
        The conjugate transpose. Its first use exchanges the entries between the ranks and stores
        them once more; products with it then cost what products with A cost.

    Notes
    -----
    A copy of the matrix is stored in the place where it is used; later changes of A have no effect.
    `replace_values` stores other values for the same rows and columns, unless rows have moved.
    Threads may share the matrix: calls that use it run one after the other.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, quiver
    >>> A = quiver.SparseMatrix(sp.diags_array([1.0, 2.0, 3.0]))
    >>> (A @ np.ones((3, 2))).tolist()
    [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    >>> B = quiver.SparseMatrix(sp.csr_array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]))
    >>> (B.H @ np.ones((2, 1))).tolist()
    [[1.0], [2.0], [3.0]]
    """

    def __init__(self, A: Any, dtype: Any = None, *, device: Any = None, stream: Any = None,
                 comm: Any = None, partition: str | SparseMatrix = "rows") -> None:
        source = sparse_source(A)
        if source is None:
            raise TypeError("SparseMatrix: a sparse matrix of scipy, cupyx or torch is expected")
        require_matrix(A.shape, "SparseMatrix", comm is None)
        self.shape: tuple[int, int] = (int(A.shape[0]), int(A.shape[1]))
        self._space = _space_of_sparse(A, device, stream).with_comm(comm)
        char = scalar_of(dtype if dtype is not None else _sparse_dtype(A))
        self.dtype = np.dtype(char)
        # The numbers of rows of X and Y, of this rank and of all ranks.
        self._rows = (self.shape[0], int(self._space.sum(self.shape[0])))
        self._columns = self._rows
        if self._rows[1] != self.shape[1]:
            self._columns = (_even_share(self.shape[1], comm), self.shape[1])
        self._operator = _make_sparse(A, self._space, char, self._columns[0], partition)
        self._adjoint: SparseMatrix | None = None

    @property
    def H(self) -> SparseMatrix:
        """A^H as a matrix of its own, which the first use makes. With a communicator, all ranks must
        make this first use together."""
        if self._adjoint is None:
            made = object.__new__(SparseMatrix)
            made.shape = (self._columns[0], self._rows[1])
            made._space, made.dtype = self._space, self.dtype
            made._rows, made._columns = self._columns, self._rows
            made._operator = _core.make_adjoint(self._operator)
            made._adjoint = None
            self._adjoint = made
        return self._adjoint

    @property
    def partition(self) -> str:
        return str(self._operator.partition)

    @property
    def halo(self) -> int:
        return int(self._operator.halo)

    def replace_values(self, values: Any) -> None:
        """Replaces the values of the entries; rows, columns and storage stay.

        Parameters
        ----------
        values : array
            One value for each entry, in the order of ``A.tocsr().data`` (torch:
            ``A.to_sparse_csr().values()``) of the matrix from which this one was made. With a
            communicator, all ranks call this, each with the values of its rows.

        Notes
        -----
        Preconditioners, inverses and an `H` that was taken before keep the former values; the next
        use of `H` makes the adjoint of the new ones. The entries of an `H` have the order of its
        rows, with ascending columns.

        Examples
        --------
        >>> import numpy as np, scipy.sparse as sp, quiver
        >>> A = quiver.SparseMatrix(sp.diags_array([1.0, 2.0, 3.0]))
        >>> A.replace_values([4.0, 5.0, 6.0])
        >>> (A @ np.ones(3)).tolist()
        [4.0, 5.0, 6.0]
        """
        space = self._space
        with space.entered():
            array = space.contiguous(space.array(values, self.dtype.char, "values"))
        if array.ndim != 1:
            raise ValueError(f"values: an array of one dimension is expected, not {array.ndim}")
        _core.replace_values(self._operator, space.raw(array))
        self._adjoint = None

    def __matmul__(self, x: Any) -> Any:
        """A X, in the library and place of X, which must be those of the matrix."""
        from ._dense import spmm

        return spmm(self, x)


def require_matrix(shape: Any, name: str, alone: bool) -> None:
    """Refuses a shape that is no matrix and, of the only rank, a matrix without rows or columns."""
    if len(shape) != 2:
        raise ValueError(f"{name}: a matrix is expected, the shape is {tuple(shape)}")
    if alone and 0 in tuple(shape):
        raise ValueError(f"{name} is empty: it has no {'rows' if shape[0] == 0 else 'columns'}")


def _even_share(count: int, comm: Any) -> int:
    if comm is None:
        return count
    return count // comm.size + (1 if comm.rank < count % comm.size else 0)


def require_square(shape: Any, name: str) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{name}: a square matrix is expected, the shape is {tuple(shape)}")
    if shape[0] == 0:
        raise ValueError(f"{name} is empty: it has no rows")


def _space_of_sparse(a: Any, device: Any, stream: Any) -> Space:
    source = sparse_source(a)
    if source == "cupyx":
        return space_of(a.data, device=device, stream=stream)
    if source == "torch":
        return space_of(a, device=device, stream=stream)
    return space_of(device=device, stream=stream)


def _sparse_dtype(a: Any) -> np.dtype:
    return dtype_of(a) if library_name(a) == "torch" else np.dtype(a.dtype)


def _make_sparse(a: Any, space: Space, char: str, columns: int | None = None,
                 partition: str | SparseMatrix = "rows") -> Any:
    """The operator of a sparse matrix. columns: the rows of X on this rank; None: those of Y. Arrays
    on the device of the space are not copied to the host here."""
    source = sparse_source(a)
    if _sparse_dtype(a).kind == "c" and char in "fd":
        raise ValueError("the matrix is complex, but a real scalar is requested")
    here = source != "scipy" and space.device >= 0 and space.comm is None and \
        _device_of(a.data if source == "cupyx" else a) == space.device and \
        space.library == ("cupy" if source == "cupyx" else "torch")
    parts: tuple[str, Any] = ("rows", None)
    if isinstance(partition, SparseMatrix):
        parts = ("rows", partition._operator)
    elif space.comm is not None:
        parts = (partition, None)
    elif partition not in ("auto", "rows"):
        raise ValueError(f"partition={partition!r} needs comm")
    arrays = csr_arrays(a, space, here)
    narrow = all(str(part.dtype).endswith("int32") for part in arrays[:2])
    if not here:
        index = np.int32 if narrow else np.int64
        return _core.make_matrix(space.context, char, np.ascontiguousarray(arrays[0], dtype=index),
                                 np.ascontiguousarray(arrays[1], dtype=index),
                                 np.ascontiguousarray(arrays[2], dtype=char), columns, *parts)
    with space.entered():
        arrays = [space.contiguous(space.array(part, wanted, "the matrix"))
                  for part, wanted in zip(arrays, ("i", "i", char) if narrow else ("q", "q", char))]
    start, column, value = (space.raw(part) for part in arrays)
    return _core.make_matrix(space.context, char, start, column, value, columns)


def csr_arrays(a: Any, space: Space, here: bool = False) -> list[Any]:
    """Row offsets, columns and values of a sparse matrix, in host memory unless `here`."""
    source = sparse_source(a)
    if source == "torch":
        with space.entered():
            csr = a.to_sparse_csr()
        arrays = [part.detach().resolve_conj()
                  for part in (csr.crow_indices(), csr.col_indices(), csr.values())]
        if not here:
            arrays = [np.asarray(part.cpu()) for part in arrays]
    else:
        with space.entered():
            csr = (a.get() if source == "cupyx" and not here else a).tocsr()
        arrays = [csr.indptr, csr.indices, csr.data]
    return arrays


def _writes_to_out(function: Callable[..., Any]) -> bool:
    """True if a function has the form f(X, out)."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters
                  if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
                  and (p.default is p.empty or p.name == "out")]
    return len(positional) >= 2


def make_function(function: Callable[..., Any], n: int, space: Space, char: str, name: str,
                   dense: bool = False) -> Any:
    """The operator of a caller's function, which multiplies by a dense array if `dense`."""
    with_out = _writes_to_out(function)

    def multiply(x_raw: Any, y_raw: Any) -> None:
        x, y = space.view(x_raw), space.view(y_raw)
        if space.library == "numpy":
            x.flags.writeable = False
        if with_out:
            function(x, y)
            return
        result = function(x)
        if not hasattr(result, "shape"):
            raise TypeError(f"{name}: the function returned {type(result).__name__}, not an array; a "
                            "function that writes its result has the form f(X, out)")
        if char in "fd" and dtype_of(result).kind == "c":
            raise TypeError(f"{name}: the function returned complex numbers, but the problem is real; "
                            "pass quiver.LinearOperator((n, n), f, dtype=complex)")
        if tuple(result.shape) != tuple(y.shape):
            raise ValueError(f"{name}: the function returned shape {tuple(result.shape)} for X of "
                             f"shape {tuple(x.shape)}")
        if space.library == "numpy":
            np.copyto(y, result, casting="same_kind")
        else:
            y[...] = result

    return _core.make_function(space.context, char, n, multiply, dense)


def sizes(space: Space, *operands: tuple[str, Any], vectors: tuple[Any, ...] = ()) \
        -> tuple[int, int]:
    """The numbers of rows of this rank and of all ranks, from the first argument with a shape."""
    for name, x in operands:
        shape = None if x is None else shape_of(x)
        if shape is not None:
            if space.comm is None:
                require_square(shape, name)
            elif len(shape) != 2 or space.sum(shape[0]) != shape[1]:
                raise ValueError(f"{name}: the rows of all ranks together must make a square matrix; "
                                 f"this rank has {tuple(shape)}")
            return int(shape[0]), int(shape[1])
    for x in vectors:
        if x is not None:
            rows = int(x.shape[0]) if hasattr(x, "shape") else len(x)
            return rows, int(space.sum(rows))
    raise ValueError("A is a function, which does not tell n: give v0, or "
                     "quiver.LinearOperator((n, n), f)")


def is_dense(a: Any) -> bool:
    return library_name(a) != "" and sparse_source(a) is None and hasattr(a, "ndim")


def is_stored(a: Any) -> bool:
    """True for a dense array and for a sparse matrix."""
    return isinstance(a, SparseMatrix) or is_dense(a) or sparse_source(a) is not None


def shape_of(a: Any) -> tuple[int, int] | None:
    """The shape of a matrix or operator; None for a function."""
    if isinstance(a, (list, tuple)):
        a = np.asarray(a)
    shape = getattr(a, "shape", None)
    return None if shape is None else tuple(shape)


def operand_dtype(a: Any) -> Any:
    """The dtype of a matrix or operator; None if it has none."""
    if a is None:
        return None
    if library_name(a) == "torch":
        return dtype_of(a)
    return getattr(a, "dtype", None)


def operand_space(a: Any, others: tuple[Any, ...], device: Any, stream: Any,
                  comm: Any = None) -> Space:
    """The space of a problem with this matrix and these arrays."""
    if isinstance(a, SparseMatrix):
        # Without `stream`, the stream is the caller's current one.
        home = a._space
        number = parse_device(device)
        if number is not None and number != home.device:
            raise ValueError(f"device={device!r}, but the SparseMatrix is on {_place(home.device)}: "
                             f"omit device, or make quiver.SparseMatrix(A, device={device!r})")
        if home.device < 0:
            if stream is not None:
                raise ValueError("stream: the SparseMatrix is in host memory, where there are no "
                                 "streams")
            return home.with_comm(comm)
        return Space(home.library, home.device, stream).with_comm(comm or home.comm)
    return _space_of_problem(a, others, device, stream).with_comm(comm)


def _space_of_problem(a: Any, others: tuple[Any, ...], device: Any, stream: Any) -> Space:
    source = sparse_source(a)
    if source in ("cupyx", "torch"):
        return _space_of_sparse(a, device, stream)
    if is_dense(a):
        return space_of(a, device=device, stream=stream)
    if isinstance(a, LinearOperator) and device is None:
        device = a.device
    return space_of(*others, device=device, stream=stream)


def make_product(a: Any, space: Space, char: str, name: str, x: Any) -> tuple[Any, int, int]:
    """The operator of `a` for one product, and the numbers of rows of Y and of X on this rank."""
    if isinstance(a, SparseMatrix):
        rows, columns = a._rows[0], a._columns[0]
    elif sparse_source(a) is not None:
        require_matrix(a.shape, name, True)
        rows, columns = int(a.shape[0]), int(a.shape[1])
        return _make_sparse(a, space, char, columns), rows, columns
    else:
        rows, _ = sizes(space, (name, a), vectors=(x,))
        columns = rows
    return make_operator(a, rows, space, char, name), rows, columns


def make_operator(a: Any, n: int, space: Space, char: str, name: str) -> Any:
    """The operator of `a`, a matrix, an operator or a function with n rows (of this rank), for one
    call."""
    if isinstance(a, SparseMatrix):
        if a._space.device != space.device:
            raise ValueError(f"{name}: the SparseMatrix is on another device than the arrays")
        if a.dtype.char != char:
            raise ValueError(f"{name}: the SparseMatrix has dtype {a.dtype}, the problem "
                             f"{np.dtype(char)}; make it with dtype={np.dtype(char)}")
        return a._operator
    if isinstance(a, (list, tuple)):
        a = np.asarray(a)
    shape = shape_of(a)
    if shape is not None:
        if space.comm is None:
            require_square(shape, name)
        if shape[0] != n:
            raise ValueError(f"{name} has {shape[0]} rows, {n} are expected")
    if sparse_source(a) is not None:
        return _make_sparse(a, space, char)
    if is_dense(a):
        dense = space.array(a, char, name)
        if space.library == "numpy":
            return make_function(lambda X, out: np.matmul(dense, X, out=out), n, space, char, name,
                                  True)
        return make_function(lambda X: dense @ X, n, space, char, name, True)
    for attribute in ("matmat", "_matmat"):
        if hasattr(a, attribute):
            return make_function(getattr(a, attribute), n, space, char, name)
    if callable(a):
        return make_function(a, n, space, char, name)
    raise TypeError(f"{name}: a matrix, an operator with matmat, or a function is expected, not "
                    f"{type(a).__name__}")


def problem_scalar(a: Any, *others: Any) -> str:
    """The scalar of a problem: that of a SparseMatrix, else the common scalar of all operands."""
    if isinstance(a, SparseMatrix):
        return str(a.dtype.char)
    char = scalar_of(*[d for d in map(operand_dtype, (a, *others)) if d is not None])
    assert char in SCALARS
    return char
