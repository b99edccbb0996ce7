// SPDX-License-Identifier: BSD-3-Clause
// Options that the commands of `quiver bench` share.
#pragma once

#include <string>

#include "blockvec/comm.hpp"

namespace quiver::apps::bench {

/// Options of every command that measures.
struct CommonOptions {
    /// auto, host or cuda.
    std::string device = "auto";
    /// Seconds after which no further measurement starts.
    double budget = 60;
    /// Samples of a measurement.
    int repeat = 20;
    /// Files to write; empty: none.
    std::string json;
    std::string markdown;
    /// The command line without file names, for reports.
    std::string command;
};

/// Throws InputError for numbers out of range and, on rank 0, for files that cannot be written or
/// are the same.
void check_common(const Comm& comm, const CommonOptions& options);

/// Throws InputError if `comm` has more than one rank.
void require_one_process(const Comm& comm);

}  // namespace quiver::apps::bench
