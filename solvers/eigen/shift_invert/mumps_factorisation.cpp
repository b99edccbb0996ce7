// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/mumps_factorisation.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dmumps_c.h>

#include "blockvec/error.hpp"
#include "blockvec/host_memory.hpp"
#include "blockvec/mpi.hpp"
#include "blockvec/number_text.hpp"
#include "solvers/eigen/shift_invert.hpp"
#include "solvers/eigen/shift_invert/gathered_matrix.hpp"

namespace quiver {
namespace {

/// The values of `job`.
constexpr int begin_job = -1;
constexpr int end_job = -2;
constexpr int analysis_job = 1;
constexpr int factor_job = 2;
constexpr int solve_job = 3;

/// The error codes in INFOG(1).
constexpr int singular_code = -10;
constexpr int allocation_code = -13;

/// Maximal number of repetitions of a factorisation whose delayed pivots need more work space than
/// expected.
constexpr int most_repetitions = 6;

constexpr double megabyte = 1e6;

bool is_too_little_work_space(int code) {
    return code == -8 || code == -9 || code == -14 || code == -15 || code == -17 || code == -20;
}

bool is_out_of_memory(int code) {
    return code == allocation_code || code == -5 || code == -7 || code == -19;
}

bool is_disabled() {
    const char* const chosen = std::getenv("QUIVER_MUMPS");
    return chosen != nullptr && std::string_view(chosen) == "none";
}

/// A count in the convention of MUMPS: a negative count is in millions.
double count_of(MUMPS_INT value) {
    return value < 0 ? -1e6 * static_cast<double>(value) : static_cast<double>(value);
}

}  // namespace

const char* mumps_version() {
    return MUMPS_VERSION;
}

bool mumps_is_available(const Comm& comm) {
    int is_begun = 0;
    int is_ended = 0;
    MPI_Initialized(&is_begun);
    MPI_Finalized(&is_ended);
    bool available = is_begun != 0 && is_ended == 0 && !is_disabled();
    comm.broadcast(&available, sizeof(available), 0);
    return available;
}

std::string missing_mumps() {
    return is_disabled() ? "MUMPS, which QUIVER_MUMPS=none disables"
                         : "MUMPS, which this build has, but which needs MPI: initialise MPI first "
                           "(in Python: from mpi4py import MPI)";
}

template <class W>
struct MumpsFactorisation<W>::Data {
    /// Real rows for each row.
    static constexpr int parts = is_complex_v<W> ? 2 : 1;

    DMUMPS_STRUC_C id{};
    /// On rank 0 the pattern and values; empty on the others.
    MUMPS_INT real_rows = 0;
    std::vector<MUMPS_INT> row;
    std::vector<MUMPS_INT> column;
    std::vector<double> value;
    std::vector<double> columns;
    MumpsForecast forecast;

    MUMPS_INT& icntl(int i) { return id.icntl[i - 1]; }
    int infog(int i) const { return id.infog[i - 1]; }
    /// Collective. False if MUMPS reports an error.
    bool call(int job) {
        id.job = job;
        dmumps_c(&id);
        return infog(1) >= 0;
    }

    void set_controls(int threads) {
        for (const int stream : {1, 2, 3, 4}) {
            icntl(stream) = stream == 4 ? 0 : -1;  // no output
        }
        icntl(6) = 0;   // the analysis uses no values, because these change with the shift
        icntl(12) = 1;  // nor does the ordering
        icntl(13) = 1;  // the last front without ScaLAPACK, which would not count its pivots
        icntl(16) = threads;
        icntl(24) = 1;  // pivots of zero are counted apart
        icntl(28) = 1;  // rank 0 analyses
    }

    /// Calls visit(row, column, value) for the lower triangle of the real form of A - sigma B.
    template <class Visit>
    static void visit_lower(const CsrRows<W>& a, const CsrRows<W>* b, double sigma, Visit&& visit) {
        const auto put = [&](std::int64_t i, std::int64_t j, W value) {
            if constexpr (is_complex_v<W>) {
                visit(2 * i, 2 * j, value.real());
                visit(2 * i + 1, 2 * j + 1, value.real());
                if (i != j) {
                    visit(2 * i + 1, 2 * j, value.imag());
                    visit(2 * i, 2 * j + 1, -value.imag());
                }
            } else {
                visit(i, j, value);
            }
        };
        const auto put_lower = [&](const CsrRows<W>& rows, double factor) {
            for (std::int64_t i = 0; i < rows.map.local_rows(); ++i) {
                visit_row(rows, i, [&](std::int64_t j, const W& entry) {
                    if (j <= i) {
                        put(i, j, factor * entry);
                    }
                });
            }
        };
        put_lower(a, 1);
        if (b != nullptr) {
            put_lower(*b, -sigma);
        } else {
            for (std::int64_t i = 0; i < a.map.local_rows(); ++i) {
                put(i, i, W(-sigma));
            }
        }
    }

    void set_pattern(const CsrRows<W>& a, const CsrRows<W>* b) {
        const std::int64_t rows = parts * a.map.global_rows();
        if (rows > std::numeric_limits<MUMPS_INT>::max()) {
            throw InputError("shift-invert: " + std::to_string(rows) +
                             " real rows are more than MUMPS can number");
        }
        visit_lower(a, b, 0, [&](std::int64_t i, std::int64_t j, double) {
            row.push_back(static_cast<MUMPS_INT>(i + 1));
            column.push_back(static_cast<MUMPS_INT>(j + 1));
        });
        value.resize(row.size());
        real_rows = static_cast<MUMPS_INT>(rows);
    }
    /// After the first job, which clears the sizes.
    void attach_pattern() {
        id.n = real_rows;
        id.nnz = static_cast<MUMPS_INT8>(row.size());
        id.irn = row.data();
        id.jcn = column.data();
        id.a = value.data();
    }

    [[noreturn]] void fail(const char* phase) const {
        const std::string codes = " (INFOG(1) = " + std::to_string(infog(1)) +
                                  ", INFOG(2) = " + std::to_string(infog(2)) + ")";
        if (is_out_of_memory(infog(1)) || is_too_little_work_space(infog(1))) {
            const double missing =
                infog(1) == -19 ? megabyte * count_of(infog(2)) : 8 * count_of(infog(2));
            throw MemoryError("shift-invert: MUMPS needs " + number_text(missing / megabyte, 3) +
                              " MB more in its " + phase + codes + "; its forecast was " +
                              number_text(forecast.all_bytes / megabyte, 4) +
                              " MB: use a node with more memory (from 20,000 rows on also more "
                              "nodes), or a method "
                              "that iterates");
        }
        throw Error(ErrorKind::other,
                    std::string("shift-invert: MUMPS failed in its ") + phase + codes);
    }
};

template <class W>
MumpsFactorisation<W>::MumpsFactorisation(const Comm& comm, int threads, const CsrRows<W>& a,
                                          const CsrRows<W>* b, Announce announce)
    : announce_(std::move(announce)), data_(std::make_unique<Data>()) {
    Data& data = *data_;
    // With one rank the error stays on this rank, so that a caller with more ranks can agree on it.
    const auto run = [&](auto&& phase) { comm.size() > 1 ? comm.agree(phase) : phase(); };
    run([&] {
        if (comm.rank() == 0) {
            data.set_pattern(a, b);
        }
    });
    data.id.sym = 2;
    data.id.par = 1;
    const MPI_Comm ranks = comm.size() > 1 ? comm.handle() : MPI_COMM_SELF;
    data.id.comm_fortran = static_cast<MUMPS_INT>(MPI_Comm_c2f(ranks));
    run([&] {
        if (!data.call(begin_job)) {
            data.fail("start");
        }
        data.set_controls(threads);
        data.attach_pattern();
        if (!data.call(analysis_job)) {
            const DMUMPS_STRUC_C failed = data.id;
            data.call(end_job);
            data.id = failed;
            data.fail("analysis");
        }
    });
    data.forecast.entries = count_of(data.infog(20));
    data.forecast.products = data.id.rinfog[0] / 2;
    data.forecast.bytes = megabyte * static_cast<double>(data.id.info[14]);
    data.forecast.all_bytes = megabyte * static_cast<double>(data.infog(17));
}

template <class W>
MumpsFactorisation<W>::~MumpsFactorisation() {
    data_->call(end_job);
}

template <class W>
const MumpsForecast& MumpsFactorisation<W>::forecast() const {
    return data_->forecast;
}

/// Throws MemoryError if a repetition with more work space would not fit the memory.
template <class W>
void MumpsFactorisation<W>::require_room() const {
    const double needed =
        data_->forecast.bytes * (1 + 0.01 * static_cast<double>(data_->icntl(14)));
    const double available = std::min(available_host_bytes(), available_address_space());
    if (needed > available) {
        throw MemoryError("shift-invert: pivoting makes MUMPS take " +
                          number_text(needed / megabyte, 4) + " MB, and " +
                          number_text(available / megabyte, 4) +
                          " MB are available: use a node with more memory (from 20,000 rows on "
                          "also more nodes), or a method that iterates");
    }
}

template <class W>
FactorFacts MumpsFactorisation<W>::factor(const CsrRows<W>& a, const CsrRows<W>* b, double sigma) {
    Data& data = *data_;
    std::size_t at = 0;
    data.visit_lower(a, b, sigma,
                     [&](std::int64_t, std::int64_t, double value) { data.value[at++] = value; });
    for (int repetition = 0;; ++repetition) {
        if (announce_) {
            announce_(factor_job);
        }
        if (data.call(factor_job)) {
            break;
        }
        if (data.infog(1) == singular_code) {
            return {};
        }
        if (!is_too_little_work_space(data.infog(1)) || repetition == most_repetitions) {
            data.fail("factorisation");
        }
        data.icntl(14) = 2 * data.icntl(14) + 20;
        require_room();
    }
    FactorFacts facts;
    facts.complete = true;
    facts.below = data.infog(12) / Data::parts;
    // An odd count of a matrix with double eigenvalues has one of them on each side of zero.
    facts.zero = (data.infog(28) + Data::parts - 1) / Data::parts + data.infog(12) % Data::parts;
    return facts;
}

template <class W>
void MumpsFactorisation<W>::solve(BlockView<W> x) {
    constexpr int parts = Data::parts;
    Data& data = *data_;
    const auto n = static_cast<std::size_t>(data.id.n);
    data.columns.resize(n * static_cast<std::size_t>(x.cols));
    const auto real_column = [&](int c) {
        return data.columns.data() + n * static_cast<std::size_t>(c);
    };
    for (std::int64_t i = 0; i < x.rows; ++i) {
        for (int c = 0; c < x.cols; ++c) {
            const W value = x.data[i * x.ld + c];
            real_column(c)[parts * i] = std::real(value);
            if constexpr (is_complex_v<W>) {
                real_column(c)[parts * i + 1] = std::imag(value);
            }
        }
    }
    data.id.rhs = data.columns.data();
    data.id.nrhs = x.cols;
    data.id.lrhs = data.id.n;
    if (announce_) {
        announce_(solve_job);
    }
    if (!data.call(solve_job)) {
        data.fail("solve");
    }
    for (std::int64_t i = 0; i < x.rows; ++i) {
        for (int c = 0; c < x.cols; ++c) {
            const double* const from = real_column(c) + parts * i;
            if constexpr (is_complex_v<W>) {
                x.data[i * x.ld + c] = W(from[0], from[1]);
            } else {
                x.data[i * x.ld + c] = from[0];
            }
        }
    }
}

template <class W>
void MumpsFactorisation<W>::follow(int job) {
    data_->call(job);  // an error is that of all ranks; rank 0 throws it
}

template class MumpsFactorisation<double>;
template class MumpsFactorisation<std::complex<double>>;

}  // namespace quiver
