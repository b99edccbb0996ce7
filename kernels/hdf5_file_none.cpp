// SPDX-License-Identifier: BSD-3-Clause
// Replaces hdf5_file.cpp and local_file.cpp in a build without HDF5.
#include <complex>

#include "blockvec/scalar_list.hpp"
#include "kernels/hdf5_file.hpp"
#include "kernels/local_file.hpp"

namespace quiver {

void require_hdf5() {
    throw UnsupportedError(
        "this build has no HDF5: install libhdf5-dev (or set CMAKE_PREFIX_PATH to where HDF5 is), "
        "then configure and build again");
}

template <class T>
void write_block_vector(Context& ctx, const std::string&, const BlockVector<T>&,
                        const BlockFileNotes&) {
    ctx.comm().agree(require_hdf5);
}

BlockFileInfo inspect_block_file(const std::string&, const std::string&) {
    require_hdf5();
    return {};
}

template <class T>
// NOLINTNEXTLINE(performance-unnecessary-value-param): declared for the reader, which moves it
BlockVector<T> read_block_vector(Context& ctx, const std::string&, std::optional<RowMap>,
                                 const std::string&) {
    ctx.comm().agree(require_hdf5);
    return {};
}

template <class T>
void write_local_file(Context&, const std::string&, std::span<const NamedBlock<T>>) {
    require_hdf5();
}

template <class T>
void read_local_rows(Context&, const std::string&, const std::string&, std::int64_t, BlockView<T>) {
    require_hdf5();
}

#define QUIVER_INSTANTIATE(T)                                                                      \
    template void write_block_vector(Context&, const std::string&, const BlockVector<T>&,          \
                                     const BlockFileNotes&);                                       \
    template BlockVector<T> read_block_vector(Context&, const std::string&, std::optional<RowMap>, \
                                              const std::string&);                                 \
    template void write_local_file(Context&, const std::string&, std::span<const NamedBlock<T>>);  \
    template void read_local_rows(Context&, const std::string&, const std::string&, std::int64_t,  \
                                  BlockView<T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
