// SPDX-License-Identifier: BSD-3-Clause
// The manifest of a checkpoint: the contents of its files, and the checksums that verify them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/checkpoint/crc64.hpp"
#include "solvers/eigen/solver_state.hpp"

namespace quiver::apps {

/// The problem and the options of a run, as names and values. Only a run with the same identity may
/// resume a checkpoint.
using CheckpointIdentity = std::vector<std::pair<std::string, std::string>>;

struct CheckpointManifest {
    /// Rows (the sum over all files) and columns of a dataset.
    struct Shape {
        std::int64_t rows = 0;
        int cols = 0;
        bool operator==(const Shape&) const = default;
    };

    std::int64_t generation = 0;
    CheckpointIdentity identity;
    /// "s", "d", "c", "z".
    std::string scalar;
    std::string solver;
    StateNumbers numbers;
    /// Blocks, whose rows are distributed over the files according to `offsets`.
    std::map<std::string, Shape> blocks;
    /// Small matrices, stored only in the first file.
    std::map<std::string, Shape> matrices;
    /// File r has rows offsets[r] .. offsets[r + 1] - 1 of all blocks.
    std::vector<std::int64_t> offsets;
    std::vector<FileSum> files;

    bool operator==(const CheckpointManifest&) const = default;
};

/// The manifest as a JSON object, whose first line holds the checksum of all bytes after that line.
std::string to_text(const CheckpointManifest& manifest);

/// Parses a text that to_text() has made. Throws InputError, whose message begins with `origin`, if
/// the text is damaged or inconsistent: numbers must be finite, offsets must ascend from 0 and
/// match the number of files, and every block must have as many rows as the offsets span.
CheckpointManifest parse_manifest(const std::string& text, const std::string& origin);

/// File names: "checkpoint-000012.json" and "checkpoint-000012-rank-0003.h5".
std::string manifest_name(std::int64_t generation);
std::string rank_file_name(std::int64_t generation, int rank);

/// The generations that have a manifest in a folder, newest first.
std::vector<std::int64_t> generations_in(const std::string& folder);

/// Removes all files of the generations for which `unwanted` returns true, complete or not. Ignores
/// files that cannot be removed.
void remove_generations(const std::string& folder,
                        const std::function<bool(std::int64_t)>& unwanted);

}  // namespace quiver::apps
