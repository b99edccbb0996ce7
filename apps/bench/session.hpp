// SPDX-License-Identifier: BSD-3-Clause
// `quiver bench kernels`, `reproduce` and `summary`: measures, resumes and merges sessions.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/case.hpp"
#include "apps/bench/choose_cases.hpp"
#include "apps/bench/options.hpp"
#include "blockvec/comm.hpp"

namespace quiver::apps::bench {

/// How the cases of a session are measured.
struct SessionOptions : CommonOptions {
    /// Bytes of the operands of cases without given rows; 0: default_operand_bytes().
    double operand_bytes = 0;
    /// Bytes of the last-level caches; 0: as the system reports them.
    double cache_bytes = 0;
    /// List of the libraries to compare with.
    std::string rivals;
    /// Variants of this library to measure too, and joules per call; see MeasureOptions.
    bool model = false;
    bool atomics = false;
    bool energy = false;
    /// File of the session to resume.
    std::string resume;
};

struct KernelsOptions : SessionOptions {
    CaseOptions cases;
};

struct ReproduceOptions : SessionOptions {
    /// A name that cases_of() takes.
    std::string paper;
    /// List of figures that compare settings (figures_of); empty: the sweeps of the paper.
    std::string figures;
};

struct SummaryOptions {
    std::vector<std::string> files;
    /// File for the merged session; empty: none.
    std::string json;
};

/// Measures the cases and prints, saves and summarises the results. Returns the worst outcome:
/// `incorrect`, else `failed`, else `passed`. Throws InputError for options that are invalid or
/// incompatible.
Outcome run_kernels(const Comm& comm, const KernelsOptions& options);
/// Like run_kernels(), for the cases of a paper; also compares its published numbers with the
/// measured ones.
Outcome run_reproduce(const Comm& comm, const ReproduceOptions& options);

/// Prints the summary of saved sessions and writes them as one. Returns the worst outcome, as
/// above. Throws InputError for files that hold no session, or were measured on different machines.
Outcome run_summary(const Comm& comm, const SummaryOptions& options);

}  // namespace quiver::apps::bench
