// SPDX-License-Identifier: BSD-3-Clause
// Reads any text as the name of a generated matrix. It must be refused with one line, or give
// consistent rows that are Hermitian if declared so, and ascending exact eigenvalues within the
// matrix's norm.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/matrices/generator_table.hpp"
#include "apps/matrices/generators.hpp"
#include "blockvec/comm.hpp"
#include "blockvec/error.hpp"
#include "tests/fuzz/fuzz_support.hpp"

namespace quiver::fuzz {
namespace {

using Complex = std::complex<double>;
constexpr std::int64_t most_rows = 2000;
constexpr int most_eigenvalues = 5;

double infinity_norm(const CsrRows<Complex>& rows) {
    double norm = 0;
    for (std::size_t row = 0; row + 1 < rows.row_start.size(); ++row) {
        double sum = 0;
        for (auto at = static_cast<std::size_t>(rows.row_start[row]);
             at < static_cast<std::size_t>(rows.row_start[row + 1]); ++at) {
            sum += std::abs(rows.value[at]);
        }
        norm = std::max(norm, sum);
    }
    return norm;
}

/// Requires that every entry has its conjugate on the other side of the diagonal, up to rounding.
void require_hermitian(const CsrRows<Complex>& rows) {
    const double bound = 1e-14 * infinity_norm(rows);
    const auto find = [&](std::int64_t row, std::int64_t column) {
        const auto begin = rows.column.begin() + rows.row_start[static_cast<std::size_t>(row)];
        const auto end = rows.column.begin() + rows.row_start[static_cast<std::size_t>(row) + 1];
        const auto at = std::lower_bound(begin, end, column);
        return at != end && *at == column
                   ? rows.value[static_cast<std::size_t>(at - rows.column.begin())]
                   : Complex(0);
    };
    for (std::size_t row = 0; row + 1 < rows.row_start.size(); ++row) {
        for (auto at = static_cast<std::size_t>(rows.row_start[row]);
             at < static_cast<std::size_t>(rows.row_start[row + 1]); ++at) {
            const Complex other = find(rows.column[at], static_cast<std::int64_t>(row));
            require(std::abs(rows.value[at] - std::conj(other)) <= bound,
                    "a matrix declared Hermitian is not Hermitian");
        }
    }
}

void run(const std::string& text) {
    const std::string spec = "gen:" + text;
    const Comm comm;
    try {
        const apps::GeneratedMatrix matrix = apps::make_matrix(spec);
        require(matrix.rows > 0, "a matrix without rows");
        const std::optional<std::vector<double>> exact =
            matrix.rows <= most_rows ? apps::exact_eigenvalues(spec, most_eigenvalues, true)
                                     : std::nullopt;
        if (matrix.rows > most_rows) {
            return;
        }
        const CsrRows<Complex> rows = apps::generate<Complex>(comm, spec, 1);
        require_sane(rows, matrix.rows, matrix.rows);
        if (matrix.symmetry == Symmetry::symmetric || matrix.symmetry == Symmetry::hermitian) {
            require_hermitian(rows);
        }
        if (exact) {
            require(exact->size() == static_cast<std::size_t>(
                                         std::min<std::int64_t>(most_eigenvalues, matrix.rows)),
                    "not as many exact eigenvalues as asked for");
            require(std::is_sorted(exact->begin(), exact->end()), "eigenvalues do not ascend");
            const double norm = infinity_norm(rows);
            for (const double value : *exact) {
                require(std::abs(value) <= norm * (1 + 1e-12),
                        "an exact eigenvalue above the norm");
            }
        }
    } catch (const Error& error) {
        require(error.kind() == ErrorKind::input || error.kind() == ErrorKind::memory,
                std::string("neither an input nor a memory error: ") + error.what());
        require_message(error.what(), "gen:");
    }
}

}  // namespace
}  // namespace quiver::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    quiver::fuzz::run(std::string(reinterpret_cast<const char*>(data), size));
    return 0;
}
