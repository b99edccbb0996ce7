// SPDX-License-Identifier: BSD-3-Clause
// Named blocks of one process in its own HDF5 file: the files of a checkpoint.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "blockvec/context.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// A block and the name of its dataset.
template <class T>
struct NamedBlock {
    std::string name;
    BlockView<const T> block;
};

/// Writes the blocks of this process, in any place, as datasets rows x cols of a new file: float or
/// double, complex scalars as compounds {r, i}, as in write_block_vector(). Blocks without columns
/// are omitted. The data go to a temporary file, which is synchronised to disk (fsync) and then
/// renamed. Not collective. Throws InputError if no file can be created at `path`, Error if writing
/// fails, UnsupportedError in a build without HDF5. Bytes: the blocks once to the disk. Memory: 8
/// MiB besides the blocks.
template <class T>
void write_local_file(Context& ctx, const std::string& path, std::span<const NamedBlock<T>> blocks);

/// X <- rows first .. first + X.rows - 1 of a dataset with X.cols columns, in the place of X. Not
/// collective. Throws InputError: no such file or dataset, too few rows, another width or kind, NaN
/// or infinity; UnsupportedError in a build without HDF5.
template <class T>
void read_local_rows(Context& ctx, const std::string& path, const std::string& dataset,
                     std::int64_t first, BlockView<T> x);

}  // namespace quiver
