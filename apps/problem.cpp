// SPDX-License-Identifier: BSD-3-Clause
#include "apps/problem.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <filesystem>
#include <limits>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include "apps/hermitian_check.hpp"
#include "apps/matrices/generators.hpp"
#include "apps/report.hpp"
#include "apps/standard_input.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/output_file.hpp"
#include "kernels/sparse/matrix_market.hpp"
#include "solvers/eigen/eigen_options.hpp"

namespace quiver::apps {
namespace {

double widened(double value) {
    return value;
}
std::complex<double> widened(std::complex<double> value) {
    return value;
}

template <class T>
std::string number(T value) {
    if constexpr (is_complex_v<T>) {
        return fmt::format("{}{:+}i", value.real(), value.imag());
    } else {
        return fmt::format("{}", value);
    }
}

}  // namespace

template <class T>
NormRefusal check_norm(const Comm& comm, const Problem& problem, const CsrRows<T>& rows,
                       int threads) {
    double largest_sum = 0;
    double largest_entry = 0;
    double infinite = 0;
#pragma omp parallel for num_threads(threads) schedule(static) \
    reduction(max                                              \
              : largest_sum, largest_entry, infinite)
    for (std::size_t row = 0; row < rows.row_start.size() - 1; ++row) {
        double row_sum = 0;
        for (auto e = static_cast<std::size_t>(rows.row_start[row]);
             e < static_cast<std::size_t>(rows.row_start[row + 1]); ++e) {
            const double size = std::abs(widened(rows.value[e]));
            infinite = is_finite(rows.value[e]) ? infinite : 1;
            largest_entry = std::max(largest_entry, size);
            row_sum += size;
        }
        largest_sum = std::max(largest_sum, row_sum);
    }
    std::array<double, 3> most{largest_sum, largest_entry, infinite};
    comm.max(std::span<double>(most));
    const auto [norm, entry, not_finite] = most;
    const NormRange<T> range;
    if (not_finite != 0) {
        throw_collective(ErrorKind::input,
                         fmt::format("{}: the entries hold NaN or infinity", problem.spec));
    }
    if (!(norm > range.most || (norm > 0 && norm < range.least))) {
        return {};
    }
    constexpr double most_of_dense = std::numeric_limits<real_t<T>>::max() / 4;
    return {fmt::format("{}: entries up to {:.4g}, row sums up to {:.4g}: {} in the solver's "
                        "norms ({} takes {:.1e} to {:.1e}); scale the matrix",
                        problem.spec, entry, norm,
                        norm > range.most ? "squares overflow" : "squares underflow",
                        name_of(dtype_v<T>), range.least, range.most),
            norm <= most_of_dense};
}

Problem inspect_problem(const Comm& comm, const std::string& spec) {
    Problem problem;
    problem.spec = spec;
    if (is_generator(spec)) {
        problem.generated = true;
        comm.agree([&] { problem.complex = is_complex_generator(spec); });
        return problem;
    }
    comm.agree([&] {
        std::error_code none;
        if (comm.rank() != 0 || spec == standard_input_name) {
            return;
        }
        if (!std::filesystem::exists(spec, none)) {
            throw InputError(fmt::format("{}: there is no such file{}", spec.empty() ? "''" : spec,
                                         generator_hint(spec)));
        }
        if (std::filesystem::is_directory(spec, none)) {
            throw InputError(spec + " is a directory; a Matrix Market file is wanted");
        }
        if (!std::filesystem::is_regular_file(spec, none)) {
            throw InputError(
                fmt::format("{}: not a regular file; `-` for MATRIX reads standard input", spec));
        }
    });
    const MatrixMarketHeader header = read_matrix_market_header(comm, matrix_source(comm, spec));
    problem.complex = header.is_complex();
    problem.symmetry = header.symmetry;
    problem.rows = header.rows;
    problem.cols = header.cols;
    return problem;
}

Dtype choose_scalar(const Problem& problem, const std::string& wanted) {
    if (wanted == "auto") {
        return problem.complex ? Dtype::z : Dtype::d;
    }
    const Dtype dtype = wanted == "s"   ? Dtype::s
                        : wanted == "c" ? Dtype::c
                        : wanted == "z" ? Dtype::z
                                        : Dtype::d;
    if (problem.complex && (dtype == Dtype::s || dtype == Dtype::d)) {
        throw InputError(
            fmt::format("{}: the matrix is complex, but --scalar {} is real; use c or z",
                        problem.spec, wanted));
    }
    return dtype;
}

template <class T>
CsrRows<T> load_problem(const Comm& comm, const Problem& problem, int threads,
                        Partition partition) {
    if (!problem.generated) {
        return read_matrix_market<T>(comm, matrix_source(comm, problem.spec), partition);
    }
    try {
        return generate<T>(comm, problem.spec, threads, partition.weights);
    } catch (const InputError& error) {
        // The specification is wrong; all ranks have parsed it and failed alike.
        throw_collective(error.kind(), error.what());
    }
}

void require_not_the_matrix(const std::string& option, const std::string& output,
                            const std::string& matrix, const std::string& what) {
    std::error_code none;
    if (matrix != standard_input_name && !is_standard_output(output) &&
        std::filesystem::equivalent(output, matrix, none)) {
        throw InputError(option + " " + output + " is " + what);
    }
}

double megabytes_of_file(const std::string& path) {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(path, none);
    return none ? 0 : static_cast<double>(bytes) * 1e-6;
}

template <class T>
void require_hermitian(const Comm& comm, const Problem& problem, CsrRows<T>& rows, int threads) {
    if (rows.map.global_rows() != rows.global_cols) {
        throw_collective(ErrorKind::input, fmt::format("{}: {} x {} is not square", problem.spec,
                                                       rows.map.global_rows(), rows.global_cols));
    }
    const bool believed = problem.generated && (rows.symmetry == Symmetry::hermitian ||
                                                rows.symmetry == Symmetry::symmetric);
    if (!believed) {
        const HermitianCheck check = check_hermitian(comm, rows, threads);
        if (!check.hermitian()) {
            const UnequalPair<T> pair = most_unequal_pair(comm, rows);
            throw_collective(
                ErrorKind::input,
                fmt::format("{}: the matrix is not {}: a({}, {}) = {}, but {}a({}, {}){} = {}; "
                            "||A - A^H||_F is about {:.0e}, where ||A||_F is {:.1e} and rounding "
                            "allows {:.1e}",
                            problem.spec, is_complex_v<T> ? "Hermitian" : "symmetric", pair.row + 1,
                            pair.column + 1, number(pair.entry), is_complex_v<T> ? "conj " : "",
                            pair.column + 1, pair.row + 1,
                            pair.transposed_is_stored ? "" : " (not stored)",
                            number(pair.transposed), check.asymmetry, check.norm, check.tolerance));
        }
    }
    rows.symmetry = problem.complex ? Symmetry::hermitian : Symmetry::symmetric;
}

#define QUIVER_INSTANTIATE(T)                                                             \
    template NormRefusal check_norm(const Comm&, const Problem&, const CsrRows<T>&, int); \
    template CsrRows<T> load_problem(const Comm&, const Problem&, int, Partition);        \
    template void require_hermitian(const Comm&, const Problem&, CsrRows<T>&, int);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::apps
