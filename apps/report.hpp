// SPDX-License-Identifier: BSD-3-Clause
// Results as tables for people (stdout) and as JSON for programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/ceilings.hpp"
#include "blockvec/comm.hpp"
#include "blockvec/ledger.hpp"
#include "blockvec/overhead.hpp"
#include "blockvec/scalar.hpp"
#include "kernels/sparse/reordering.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/abft/abft.hpp"
#include "solvers/eigen/eigen_options.hpp"

namespace quiver::apps {

/// "single", "double", "single complex", "double complex".
const char* name_of(Dtype dtype);

/// True for s and c.
constexpr bool is_single(Dtype dtype) {
    return dtype == Dtype::s || dtype == Dtype::c;
}

/// "1 rank", "2 ranks".
std::string plural(std::int64_t count, const char* noun);

/// The current time, as in "2026-11-21T14:03:00Z".
std::string utc_now();

/// A number of eigenvalues: those above the shift if the largest are wanted, otherwise those below
/// it. `expected` follows from the solver's result, `counted` from a factorisation.
struct InertiaCount {
    double shift = 0;
    std::int64_t expected = 0;
    std::int64_t counted = 0;
    bool reliable = false;

    /// An unreliable count neither confirms nor contradicts the result.
    bool agrees() const { return !reliable || counted == expected; }
};

/// Where a run took place, and how long it took.
struct RunFacts {
    struct Where {
        int ranks = 1;
        int threads = 1;
        /// "host" or "cuda".
        std::string device = "host";
        /// The GPU's name, empty on the host.
        std::string device_name;
        /// Execution::note.
        std::string note;
        bool mixed = false;  // Execution::mixed
        ReorderingFacts distribution = {};
    } where;
    /// The phases in order, and the seconds of each. A single phase has no name.
    std::vector<std::pair<std::string, double>> seconds;
};

/// Everything that `quiver eigs` reports.
struct EigsReport {
    struct Matrix {
        std::string spec;
        std::int64_t rows = 0;
        std::int64_t nonzeros = 0;
        Dtype scalar = Dtype::d;
        Symmetry symmetry = Symmetry::symmetric;
    } matrix;
    RunFacts run;

    /// B of A x = lambda B x; empty without B.
    std::string mass;
    std::string preconditioner = "none";
    std::string method;
    /// Why the method was chosen; may be empty.
    std::string method_reason;
    /// The library of the factorisations; empty without any.
    std::string library;
    int k = 0;
    /// True if no k was given and the matrix has fewer rows than the default k.
    bool k_lowered = false;
    /// The text of --which, or "window".
    std::string which;
    std::optional<Window> window;
    /// The number of eigenvalues in the window that the density of states predicts, and the
    /// standard error of this prediction.
    double expected_count = 0;
    double expected_error = 0;
    std::uint64_t seed = 0;
    double tolerance_asked = 0;

    /// Fields of EigenResult; `converged` also requires `verified` and inertia counts that agree.
    std::vector<double> eigenvalues;
    std::vector<double> residuals;
    std::vector<double> errors;
    double norm_estimate = 0;
    double tolerance = 0;
    bool tolerance_raised = false;
    bool converged = false;
    bool verified = false;
    bool cluster_cut = false;
    bool interrupted = false;
    /// Counts of --verify inertia; empty without it.
    std::vector<InertiaCount> inertia;
    std::int64_t iterations = 0;
    std::int64_t operator_applications = 0;
    int block = 0;
    int basis = 0;
    std::string message;

    /// The counts over all ranks; no value if neither --abft nor --inject is given.
    struct Abft {
        std::string mode;
        AbftCounts counts;
        bool injects = false;
        /// The noun for one of counts.products.
        const char* unit = "product";
    };
    std::optional<Abft> abft;

    /// Known eigenvalues of a generated matrix, ascending; empty if none are known.
    std::vector<double> exact;
    /// The ledger of rank 0.
    std::vector<KernelRecord> kernels;
    /// Indexed by Overhead; empty if nothing was counted.
    std::vector<OverheadRecord> overhead;
    /// If given, the table ends with profile_table() against these ceilings.
    std::optional<bench::Ceilings> ceilings = {};
};

/// The table; `verbose` adds the table of kernels.
std::string to_table(const EigsReport& report, bool verbose);

/// One JSON object, schema 1; numbers that are not finite become null.
std::string to_json(const EigsReport& report);

/// Rank 0 writes the text to stdout (or stderr) and flushes it. Collective: throws Error on all
/// ranks if the stream fails, as on a full disk.
void print(const Comm& comm, const std::string& text, std::FILE* to = stdout);

/// The help text of every --json.
inline constexpr const char* json_option =
    "Also write all results to this file, pipe or device. With -, they go to standard output, and "
    "the table to standard error";

/// The stream of a command's table: stderr if one of the outputs is standard output.
std::FILE* table_stream(std::initializer_list<std::string> outputs);

/// Throws InputError, which names the option, if the output `path` cannot be written; see
/// OutputFile (kernels/output_file.hpp) for the meaning of a path. Creates missing parent folders.
/// If `format` is given, the output must be a regular file; `format` is the subject of the message,
/// as in "an HDF5 file".
void check_writable(const std::string& path, const std::string& option = "--json",
                    const std::string& format = "");

/// Calls write_output(): a regular file is never partial. `durable`: the text is on the disk
/// (fsync) before the file gets its name. Throws Error if the text cannot be written.
void write_file(const std::string& path, const std::string& text, bool durable = false);

/// Rank 0 builds the text and writes it. Collective: its error is thrown on all ranks.
void write_on_rank_0(const Comm& comm, const std::string& path,
                     const std::function<std::string()>& make_text);

}  // namespace quiver::apps
