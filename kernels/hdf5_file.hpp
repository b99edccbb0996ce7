// SPDX-License-Identifier: BSD-3-Clause
// Block vectors in HDF5 files, which h5py, Julia and MATLAB read as plain arrays.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/small_matrix.hpp"

namespace quiver {

/// Additional data stored in the file of a block.
struct BlockFileNotes {
    /// A two-dimensional dataset in double precision, complex or real.
    struct Matrix {
        std::string name;
        SmallMatrix<std::complex<double>> values;
        bool complex = false;
    };
    /// One-dimensional datasets of doubles, by name.
    std::vector<std::pair<std::string, std::vector<double>>> numbers = {};
    /// Text attributes of the file, by name.
    std::vector<std::pair<std::string, std::string>> texts = {};
    std::vector<Matrix> matrices = {};
    /// The name of the dataset of the block.
    std::string dataset = "vectors";
};

/// Shape and kind of a dataset, known before it is read.
struct BlockFileInfo {
    std::int64_t rows = 0;
    int cols = 0;
    bool complex = false;
};

/// Throws UnsupportedError in a build without HDF5, with the remedy in its text. So do the
/// functions below.
void require_hdf5();

/// Writes the global rows x width block X as dataset "vectors" (or BlockFileNotes::dataset),
/// row-major: float or double, complex scalars as compounds {r, i}, which h5py reads as complex.
/// Collective; X in any place. The ranks send their rows to rank 0 in chunks, so that no rank needs
/// more than 8 MiB (or one row) besides X. The data go to a temporary file that is renamed at the
/// end: a reader sees either the old file or the complete new one. The notes of rank 0 are written.
/// Throws on all ranks: InputError if no file can be created at `path`, ShapeError if the rows of X
/// are distributed over another number of ranks, Error if writing fails. Bytes: X once over the
/// network, once to the disk.
template <class T>
void write_block_vector(Context& ctx, const std::string& path, const BlockVector<T>& x,
                        const BlockFileNotes& notes = {});

/// Opens a file and returns the shape and kind of a dataset; not collective. Throws InputError: no
/// such file or dataset, unsupported shape or kind.
BlockFileInfo inspect_block_file(const std::string& path, const std::string& dataset = "vectors");

/// Reads a one- or two-dimensional dataset of any precision into the place of the Context, with the
/// rows distributed by `map` (default: equally). Real data may be read into complex scalars, but
/// not the reverse. Collective; every rank opens the file and reads its own rows, 8 MiB at a time.
/// Throws on all ranks: InputError for no such file or dataset, unsupported shape or kind, NaN or
/// infinity; MemoryError.
template <class T>
BlockVector<T> read_block_vector(Context& ctx, const std::string& path,
                                 std::optional<RowMap> map = std::nullopt,
                                 const std::string& dataset = "vectors");

}  // namespace quiver
