// SPDX-License-Identifier: BSD-3-Clause
// The files that a subcommand writes, one for each of its output options.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace quiver::apps {

/// Output::format of an HDF5 file.
inline constexpr const char* hdf5_format = "an HDF5 file";

struct Output {
    /// As messages name it: "--json", "-o".
    std::string option;
    /// If only a regular file will do: the subject of the message, such as hdf5_format.
    std::string format;
    std::string path;
    /// An option that is given with an empty path is an error.
    bool given = false;
};

/// A file that a subcommand reads; also `-`, "gen:..." and "".
struct Input {
    std::string path;
    std::string what = "the matrix itself";
};

/// Checks the outputs that are given. Throws InputError, which names the option, if an output
/// cannot be written (check_writable), if it is one of the inputs ("OPTION PATH is WHAT"), or if
/// two outputs are the same file; UnsupportedError for an HDF5 file in a build without HDF5. For
/// rank 0.
void check_outputs(std::initializer_list<const Output*> outputs, const std::vector<Input>& inputs);

}  // namespace quiver::apps
