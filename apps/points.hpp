// SPDX-License-Identifier: BSD-3-Clause
// The points of `quiver kmeans`: columns of an HDF5 file, a Matrix Market file, or generated blobs.
#pragma once

#include <cstdint>
#include <string>

#include "blockvec/block_vector.hpp"
#include "blockvec/comm.hpp"

namespace quiver::apps {

/// The help text of a POINTS argument.
inline constexpr const char* points_argument =
    "HDF5 file, Matrix Market file (.mtx, .mtx.gz, or - for standard input), or "
    "gen:blobs,n=N,d=D,k=K,spread=S,seed=N";

/// Points known by their size, before they are read or generated.
struct Points {
    std::string spec;
    /// The dataset of an HDF5 file.
    std::string dataset;
    enum class Source : std::uint8_t { hdf5, matrix_market, blobs } source = Source::hdf5;
    std::int64_t rows = 0;
    int columns = 0;
    /// Of blobs: their number, the standard deviation of a point from its blob, the seed.
    std::int64_t blobs = 8;
    double spread = 1;
    std::int64_t seed = 1;
};

/// Reads the header of a file, or parses the text of generated blobs. Collective; throws InputError
/// on all ranks: no such file, complex numbers, more than 2^31 columns, an unknown key or value.
Points inspect_points(const Comm& comm, const std::string& spec, const std::string& dataset);

/// Reads or generates the points, with the rows distributed equally. Blob i mod k of point i is at
/// a random place in [-10, 10]^d; the points do not depend on the number of ranks. T is float,
/// double, half_t or bfloat16_t; the last two are rounded from float. Collective; throws on all
/// ranks.
template <class T>
BlockVector<T> load_points(Context& ctx, const Points& points);

}  // namespace quiver::apps
