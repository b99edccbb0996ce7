// SPDX-License-Identifier: BSD-3-Clause
// Results as a person reads them (tables on stdout) and as programs do (JSON).
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "blockvec/comm.hpp"
#include "blockvec/ledger.hpp"
#include "blockvec/overhead.hpp"
#include "blockvec/scalar.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/abft/abft.hpp"
#include "solvers/eigen/eigen_options.hpp"

namespace quiver::apps {

/// "single", "double", "single complex", "double complex".
const char* name_of(Dtype dtype);

/// "1 rank", "2 ranks".
std::string plural(std::int64_t count, const char* noun);

/// The present time, "2026-11-21T14:03:00Z".
std::string utc_now();

/// Eigenvalues beyond a shift, at the wanted end: as the solver's result has them, and as a
/// factorisation counts them.
struct InertiaCount {
    double shift = 0;
    std::int64_t expected = 0;
    std::int64_t counted = 0;
    bool reliable = false;

    /// What could not be counted speaks neither for the result nor against it.
    bool agrees() const { return !reliable || counted == expected; }
};

/// All that `quiver eigs` has to say.
struct EigsReport {
    struct Matrix {
        std::string spec;
        std::int64_t rows = 0;
        std::int64_t nonzeros = 0;
        Dtype scalar = Dtype::d;
        Symmetry symmetry = Symmetry::symmetric;
    } matrix;
    struct Seconds {
        double read = 0;
        double setup = 0;
        double solve = 0;
    } seconds;
    struct Where {
        int ranks = 1;
        int threads = 1;
        /// "host" or "cuda".
        std::string device = "host";
        /// The GPU's name, empty on the host.
        std::string device_name;
        /// Why --device auto took the host.
        std::string note;
    } where;

    /// B of A x = lambda B x; empty where there is none.
    std::string mass;
    std::string preconditioner = "none";
    std::string method;
    /// Why it was taken.
    std::string method_reason;
    int k = 0;
    /// No k was given, and the matrix has fewer rows than the default.
    bool k_lowered = false;
    /// smallest, largest or window.
    std::string which;
    std::optional<Window> window;
    /// How many the density of states lets expect in the window.
    double expected_count = 0;
    double expected_error = 0;
    std::uint64_t seed = 0;
    double tolerance_asked = 0;

    /// The fields of EigenResult.
    std::vector<double> eigenvalues;
    std::vector<double> residuals;
    double norm_estimate = 0;
    double tolerance = 0;
    bool tolerance_raised = false;
    bool converged = false;
    bool verified = false;
    bool cluster_cut = false;
    bool interrupted = false;
    /// Of --verify inertia; empty where it was not asked for.
    std::vector<InertiaCount> inertia;
    std::int64_t iterations = 0;
    std::int64_t operator_applications = 0;
    int block = 0;
    int basis = 0;
    std::string message;

    /// Of --abft and --inject, over all ranks; none where neither was given.
    struct Abft {
        std::string mode;
        AbftCounts counts;
        bool injects = false;
        /// What `products` counts.
        const char* unit = "product";
    };
    std::optional<Abft> abft;

    /// Known eigenvalues of a generated matrix, ascending; empty where none are known.
    std::vector<double> exact;
    /// The ledger of rank 0.
    std::vector<KernelRecord> kernels;
    /// By Overhead; empty where nothing was counted.
    std::vector<OverheadRecord> overhead;
    /// The table ends with profile_table().
    bool profile = false;
};

/// The table; `verbose` adds the kernels.
std::string to_table(const EigsReport& report, bool verbose);

/// One JSON object, schema 1; numbers that are not finite become null.
std::string to_json(const EigsReport& report);

/// Rank 0 writes the text to stdout (or stderr) and flushes it. Collective: when the stream refuses
/// (a full disk), Error on all ranks.
void print(const Comm& comm, const std::string& text, std::FILE* to = stdout);

/// The help of every --json.
inline constexpr const char* json_option =
    "Also write all results to this file, pipe or device; - for standard output, the table then "
    "goes to standard error";

/// Where a command prints its table: stderr if one of its outputs takes standard output.
std::FILE* table_stream(std::initializer_list<std::string> outputs);

/// Throws InputError, with the option that names it, unless the output `path` can be written
/// (kernels/output_file.hpp says what a name stands for; `-` is standard output). Creates missing
/// parent folders. `format`, if given, needs a regular file, and starts the sentence that says so.
void check_writable(const std::string& path, const std::string& option = "--json",
                    const std::string& format = "");

/// Writes an output as write_output() does: a regular file is never partial. `durable`: the text is
/// on the disk (fsync) before it has its name. Throws Error when the disk refuses.
void write_file(const std::string& path, const std::string& text, bool durable = false);

/// Rank 0 makes the text and writes it. Collective: its error is thrown on all ranks.
void write_on_rank_0(const Comm& comm, const std::string& path,
                     const std::function<std::string()>& make_text);

}  // namespace quiver::apps
