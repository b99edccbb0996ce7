// SPDX-License-Identifier: BSD-3-Clause
// The manifest of a checkpoint: what its files hold, and how one knows that they still do.
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

/// What a run was asked, in words: name and value. Two runs with the same ones have the same
/// answer.
using CheckpointIdentity = std::vector<std::pair<std::string, std::string>>;

struct CheckpointManifest {
    /// Rows and columns of a dataset; rows are those of all files together.
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
    /// Dealt to the files by `offsets`.
    std::map<std::string, Shape> blocks;
    /// Whole in the first file.
    std::map<std::string, Shape> matrices;
    /// File r has rows offsets[r] .. offsets[r + 1] - 1 of all blocks.
    std::vector<std::int64_t> offsets;
    std::vector<FileSum> files;

    bool operator==(const CheckpointManifest&) const = default;
};

/// A JSON object whose first line is its checksum: of all bytes after that line.
std::string to_text(const CheckpointManifest& manifest);

/// Throws InputError, beginning with `origin`, unless the text is one of to_text(), whole, and
/// makes sense: finite numbers, rows that ascend, a file for each part.
CheckpointManifest parse_manifest(const std::string& text, const std::string& origin);

/// "checkpoint-000012.json", "checkpoint-000012-rank-0003.h5".
std::string manifest_name(std::int64_t generation);
std::string rank_file_name(std::int64_t generation, int rank);

/// The generations that have a manifest in a folder, newest first.
std::vector<std::int64_t> generations_in(const std::string& folder);

/// Removes all files, whole or not, of the generations that are said to be unwanted. What cannot be
/// removed stays.
void remove_generations(const std::string& folder,
                        const std::function<bool(std::int64_t)>& unwanted);

}  // namespace quiver::apps
