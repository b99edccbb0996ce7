# SPDX-License-Identifier: BSD-3-Clause
"""Block vectors on CPUs and NVIDIA GPUs: eigenvalues with every copy, linear systems, products.

>>> import scipy.sparse as sp, quiver
>>> w, v = quiver.eigsh(sp.diags_array([3.0, 1.0, 2.0, 2.0]), k=2, which='LA')
>>> w.round(6).tolist()
[2.0, 3.0]
"""

from . import _openblas

_openblas.load()  # before _core, which may load OpenBLAS through MUMPS

from ._core import Error
from ._core import version as __version__
from ._cluster import KMeans, kmeans
from ._dense import QR, BatchedLU, cholesky, gram, lu, qr, solve, spmm, tsmm, tsmm_gram, tsmttsm
from ._eigen import (AccuracyWarning, EigenInfo, Iteration, NoConvergence, Unverified,
                     UnverifiedWarning, eigsh)
from ._graph import SpectralEmbedding, nearest_neighbours, spectral_embedding
from ._hamiltonian import ED, Density, ed
from ._linear import LinearInfo, bicgstab, cg, gmres, minres
from ._modes import Modes, modes
from ._operators import LinearOperator, SparseMatrix
from ._svd import PCA, SVD, SVDSInfo, pca, svd, svds

__all__ = [
    "AccuracyWarning", "BatchedLU", "Density", "ED", "EigenInfo", "Error", "Iteration", "KMeans",
    "LinearInfo", "LinearOperator", "Modes", "NoConvergence", "PCA", "QR", "SVD", "SVDSInfo", "SparseMatrix",
    "SpectralEmbedding", "Unverified", "UnverifiedWarning", "__version__", "bicgstab", "cg", "cholesky", "ed",
    "eigsh", "gmres", "gram", "kmeans", "lu", "minres", "modes", "nearest_neighbours", "pca", "qr", "solve",
    "spectral_embedding", "spmm", "svd", "svds", "tsmm", "tsmm_gram", "tsmttsm",
]
