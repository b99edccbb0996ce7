// SPDX-License-Identifier: BSD-3-Clause
#include "apps/problem.hpp"

#include <cmath>
#include <complex>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "apps/hermitian_check.hpp"
#include "apps/matrices/generators.hpp"
#include "blockvec/error.hpp"
#include "kernels/sparse/matrix_market.hpp"

namespace quiver::apps {
namespace {

template <class T>
std::string number(T value) {
    if constexpr (is_complex_v<T>) {
        return fmt::format("{}{:+}i", value.real(), value.imag());
    } else {
        return fmt::format("{}", value);
    }
}

}  // namespace

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
        if (comm.rank() == 0 && !std::filesystem::exists(spec, none)) {
            throw InputError(fmt::format("{}: there is no such file{}", spec.empty() ? "''" : spec,
                                         generator_hint(spec)));
        }
        if (comm.rank() == 0 && std::filesystem::is_directory(spec, none)) {
            throw InputError(spec + ": is a directory, a Matrix Market file is wanted");
        }
    });
    const MatrixMarketHeader header = read_matrix_market_header(comm, spec);
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
        throw InputError(fmt::format("{}: the matrix is complex, --scalar {} is real: use c or z",
                                     problem.spec, wanted));
    }
    return dtype;
}

template <class T>
CsrRows<T> load_problem(const Comm& comm, const Problem& problem, int threads) {
    if (!problem.generated) {
        return read_matrix_market<T>(comm, problem.spec);
    }
    try {
        return generate<T>(comm, problem.spec, threads);
    } catch (const InputError& error) {
        // What is wrong is the specification, which all ranks have read.
        throw_collective(error.kind(), error.what());
    }
}

double megabytes_of_file(const std::string& path) {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(path, none);
    return none ? 0 : static_cast<double>(bytes) * 1e-6;
}

template <class T>
void require_hermitian(const Comm& comm, const Problem& problem, CsrRows<T>& rows) {
    if (rows.map.global_rows() != rows.global_cols) {
        throw_collective(ErrorKind::input, fmt::format("{}: {} x {} is not square", problem.spec,
                                                       rows.map.global_rows(), rows.global_cols));
    }
    const bool believed = problem.generated && (rows.symmetry == Symmetry::hermitian ||
                                                rows.symmetry == Symmetry::symmetric);
    if (!believed) {
        const HermitianCheck check = check_hermitian(comm, rows);
        if (!std::isfinite(check.norm)) {
            throw_collective(ErrorKind::input,
                             fmt::format("{}: the entries hold NaN or infinity", problem.spec));
        }
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

template CsrRows<float> load_problem(const Comm&, const Problem&, int);
template CsrRows<double> load_problem(const Comm&, const Problem&, int);
template CsrRows<std::complex<float>> load_problem(const Comm&, const Problem&, int);
template CsrRows<std::complex<double>> load_problem(const Comm&, const Problem&, int);
template void require_hermitian(const Comm&, const Problem&, CsrRows<float>&);
template void require_hermitian(const Comm&, const Problem&, CsrRows<double>&);
template void require_hermitian(const Comm&, const Problem&, CsrRows<std::complex<float>>&);
template void require_hermitian(const Comm&, const Problem&, CsrRows<std::complex<double>>&);

}  // namespace quiver::apps
