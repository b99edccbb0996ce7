// SPDX-License-Identifier: BSD-3-Clause
// Compares the numbers in problems.txt with the formulas in its comments, and solves its
// eigenproblems by the C++ interface.
#include <algorithm>
#include <cmath>
#include <complex>
#include <fstream>
#include <numbers>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/sparse/assemble.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

/// The lines of the table whose first word is `kind`, without `kind` and the name.
std::vector<std::istringstream> lines(const std::string& kind) {
    std::ifstream file(QUIVER_SOURCE_DIR "/tests/doors/problems.txt");
    std::vector<std::istringstream> found;
    for (std::string text; std::getline(file, text);) {
        std::istringstream words(text);
        std::string first, name;
        if (words >> first && first == kind && words >> name) {
            found.push_back(std::move(words));
        }
    }
    return found;
}

struct Matrix {
    char type = 0;
    int n = 0;
    bool periodic = false;
    double diagonal = 0;
    std::complex<double> beside;
};

Matrix read_matrix(std::istringstream& words) {
    Matrix a;
    double re = 0, im = 0;
    words >> a.type >> a.n >> a.periodic >> a.diagonal >> re >> im;
    a.beside = {re, im};
    return a;
}

std::vector<double> spectrum(const Matrix& a) {
    std::vector<double> w;
    for (int j = 0; j < a.n; ++j) {
        const double angle = a.periodic ? 2 * std::numbers::pi * j / a.n + std::arg(a.beside)
                                        : (j + 1) * std::numbers::pi / (a.n + 1);
        w.push_back(a.diagonal + 2 * std::abs(a.beside) * std::cos(angle));
    }
    std::sort(w.begin(), w.end());
    return w;
}

/// The k values that are smallest by `key`, ascending.
template <class Key>
std::vector<double> select(std::vector<double> w, int k, const Key& key) {
    std::stable_sort(w.begin(), w.end(), [&](double x, double y) { return key(x) < key(y); });
    w.resize(static_cast<std::size_t>(k));
    std::sort(w.begin(), w.end());
    return w;
}

std::vector<double> wanted(const Matrix& a, const std::string& which, double target, int k) {
    const std::vector<double> w = spectrum(a);
    if (which == "both-ends") {
        std::vector<double> low = select(w, k / 2, [](double x) { return x; });
        const auto high = select(w, k - k / 2, [](double x) { return -x; });
        low.insert(low.end(), high.begin(), high.end());
        return low;
    }
    return select(w, k, [&](double x) {
        return which == "smallest"             ? x
               : which == "largest"            ? -x
               : which == "largest-magnitude"  ? -std::abs(x)
               : which == "smallest-magnitude" ? std::abs(x)
                                               : std::abs(x - target);
    });
}

template <class T>
T as(std::complex<double> value) {
    if constexpr (is_complex_v<T>) {
        return T(value);
    } else {
        return static_cast<T>(value.real());
    }
}

template <class T>
EigenResult<T> solve(Context& ctx, const Matrix& a, const EigenOptions& options) {
    const std::function<void(std::int64_t, RowEntries<T>&)> make_row = [&](std::int64_t i,
                                                                           RowEntries<T>& row) {
        const auto add = [&](std::int64_t column, std::complex<double> value) {
            if (a.periodic || (column >= 0 && column < a.n)) {
                row.add((column + a.n) % a.n, as<T>(value));
            }
        };
        add(i - 1, std::conj(a.beside));
        add(i, a.diagonal);
        add(i + 1, a.beside);
    };
    SparseMatrix<T> matrix(ctx,
                           rows_from_callback<T>(ctx.comm(), a.n, Symmetry::hermitian, make_row));
    return eigensolve(ctx, EigenProblem<T>{matrix}, options);
}

TEST(Problems, EigenvaluesFollowTheFormulasAndCppFindsThem) {
    int problems = 0;
    for (std::istringstream& words : lines("eigen")) {
        const Matrix a = read_matrix(words);
        std::string which, method;
        EigenOptions options;
        words >> which >> options.target >> method >> options.k;
        const std::vector<double> exact = wanted(a, which, options.target, options.k);
        for (const Which one :
             {Which::smallest, Which::largest, Which::target, Which::largest_magnitude,
              Which::smallest_magnitude, Which::both_ends}) {
            options.which = which == to_string(one) ? one : options.which;
        }
        for (const Method one :
             {Method::lanczos, Method::chebyshev, Method::lobpcg, Method::jacobi_davidson}) {
            options.method = method == to_string(one) ? one : options.method;
        }
        for (const double value : exact) {
            double given = std::nan("");
            words >> given;
            EXPECT_NEAR(given, value, 1e-14) << words.str();
        }
        EXPECT_TRUE((words >> std::ws).eof()) << "more numbers than eigenvalues: " << words.str();
        Context ctx = test::make_context();
        const Dtype dtype = a.type == 's'   ? Dtype::s
                            : a.type == 'd' ? Dtype::d
                            : a.type == 'c' ? Dtype::c
                                            : Dtype::z;
        visit_dtype(dtype, [&]<class T>() {
            const EigenResult<T> result = solve<T>(ctx, a, options);
            EXPECT_TRUE(result.converged) << words.str() << result.message;
            ASSERT_EQ(result.eigenvalues.size(), exact.size());
            const double bound = (result.tolerance + 4 * static_cast<double>(epsilon_v<T>)) *
                                 (std::abs(a.diagonal) + 2 * std::abs(a.beside));
            for (std::size_t j = 0; j < exact.size(); ++j) {
                EXPECT_NEAR(result.eigenvalues[j], exact[j], bound) << words.str();
            }
        });
        ++problems;
    }
    EXPECT_GE(problems, 8);
}

std::complex<double> entry_of_a(int i, int j, bool is_complex) {
    return {(3 * i + 5 * j) % 7 - 3.0, is_complex ? (2 * i + 3 * j) % 5 - 2.0 : 0.0};
}
std::complex<double> entry_of_b(int i, int j, bool is_complex) {
    return {(i + 2 * j) % 5 - 2.0, is_complex ? (4 * i + j) % 7 - 3.0 : 0.0};
}

TEST(Problems, ProductsFollowTheFormulas) {
    int products = 0;
    for (const bool is_tsmttsm : {true, false}) {
        for (std::istringstream& words : lines(is_tsmttsm ? "tsmttsm" : "tsmm")) {
            char type = 0;
            int rows = 0, m = 0, n = 0;
            words >> type >> rows >> m >> n;
            const bool is_complex = type == 'c' || type == 'z';
            for (int p = 0; p < (is_tsmttsm ? m : 1); ++p) {
                for (int q = 0; q < n; ++q) {
                    std::complex<double> sum = 0;
                    for (int i = 0; i < (is_tsmttsm ? rows : m); ++i) {
                        sum += is_tsmttsm ? std::conj(entry_of_a(i, p, is_complex)) *
                                                entry_of_b(i, q, is_complex)
                                          : entry_of_a(rows - 1, i, is_complex) *
                                                entry_of_b(i, q, is_complex);
                    }
                    double re = 0, im = 0;
                    words >> re >> im;
                    EXPECT_EQ(std::complex<double>(re, im), sum) << words.str();
                }
            }
            EXPECT_TRUE(words.good() || words.eof()) << words.str();
            ++products;
        }
    }
    EXPECT_GE(products, 8);
}

}  // namespace
}  // namespace quiver
