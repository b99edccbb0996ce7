// SPDX-License-Identifier: BSD-3-Clause
// Preconditioners and inverses in eigensolvers, also for matrices from applications whose small end
// needs them.
#include <cmath>
#include <complex>
#include <fstream>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "blockvec/error.hpp"
#include "kernels/sparse/matrix_market.hpp"
#include "solvers/eigen/eigensolver.hpp"
#include "solvers/precond/preconditioner.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/eigen_checks.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::test {
namespace {

EigenOptions options_for(Method method, int k, double tol) {
    EigenOptions options;
    options.method = method;
    options.k = k;
    options.tol = tol;
    return options;
}

template <class T>
class PreconditionedEigen : public ::testing::Test {
  protected:
    Context ctx = make_context();
};
using Scalars = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(PreconditionedEigen, Scalars);

TYPED_TEST(PreconditionedEigen, EveryNameInBothMethods) {
    using T = TypeParam;
    auto a = laplace3d<T>(this->ctx, 11, 10, 9);
    const auto spectrum = laplace3d_spectrum(11, 10, 9);
    for (const Method method : {Method::jacobi_davidson, Method::lobpcg}) {
        std::int64_t jacobi = std::numeric_limits<std::int64_t>::max();
        for (const std::string text :
             {"jacobi", "block-jacobi", "chebyshev,degree=5", "ic,sweeps=3", "ic", "ilu", "ldlt"}) {
            SCOPED_TRACE(text + " in " + to_string(method));
            const auto k = make_preconditioner(this->ctx, a, parse_preconditioner(text));
            EigenProblem<T> problem{a};
            problem.preconditioner = k.get();
            const auto result = eigensolve(this->ctx, problem, options_for(method, 5, 1e-9));
            check_pairs(this->ctx, a, result, spectrum, 5, Which::smallest);
            EXPECT_EQ(result.method, method);
            // The diagonal is constant, so jacobi saves nothing.
            if (text == "jacobi") {
                jacobi = result.operator_applications;
            } else if (text != "block-jacobi") {
                EXPECT_LT(result.operator_applications, jacobi);
            }
        }
    }
}

/// Tridiagonal, positive definite.
template <class T>
SparseMatrix<T> mass_matrix(Context& ctx, std::int64_t n) {
    return matrix_from_rows<T>(ctx, n, [n](std::int64_t row, RowEntries<T>& entries) {
        entries.add(row, T(2));
        if (row > 0) {
            entries.add(row - 1, T(real_t<T>(0.5)));
        }
        if (row + 1 < n) {
            entries.add(row + 1, T(real_t<T>(0.5)));
        }
    });
}

TYPED_TEST(PreconditionedEigen, ShiftAndInvertAtATarget) {
    using T = TypeParam;
    auto a = laplace3d<T>(this->ctx, 7, 6, 5);
    auto b = mass_matrix<T>(this->ctx, 210);
    PreconditionerOptions ldlt = parse_preconditioner("ldlt,shift=2.7");
    ldlt.absolute = false;
    EigenOptions options = options_for(Method::jacobi_davidson, 6, 1e-9);
    options.which = Which::target;
    for (const bool pencil : {false, true}) {
        SCOPED_TRACE(pencil ? "pencil" : "standard");
        options.target = pencil ? 1.7 : 2.7;
        ldlt.shift = options.target;
        EigenProblem<T> problem{a};
        problem.b = pencil ? &b : nullptr;
        const auto plain = eigensolve(this->ctx, problem, options);
        const auto inverse = make_preconditioner(this->ctx, a, ldlt, pencil ? &b : nullptr);
        problem.inverse = inverse.get();
        const auto result = eigensolve(this->ctx, problem, options);
        EXPECT_TRUE(plain.converged) << plain.message;
        EXPECT_TRUE(result.converged) << result.message;
        EXPECT_LT(3 * result.operator_applications, plain.operator_applications);
        ASSERT_EQ(result.eigenvalues.size(), 6u);
        for (std::size_t j = 0; j < 6; ++j) {
            EXPECT_NEAR(result.eigenvalues[j], plain.eigenvalues[j],
                        2 * (result.tolerance + 20 * static_cast<double>(epsilon_v<T>)) *
                            result.norm_estimate)
                << j;
        }
        if (!pencil) {
            auto exact = laplace3d_spectrum(7, 6, 5);
            std::sort(exact.begin(), exact.end(), [&](double x, double y) {
                return std::abs(x - options.target) < std::abs(y - options.target);
            });
            exact.resize(6);
            std::sort(exact.begin(), exact.end());
            for (std::size_t j = 0; j < 6; ++j) {
                EXPECT_NEAR(result.eigenvalues[j], exact[j],
                            (result.tolerance + 20 * static_cast<double>(epsilon_v<T>)) * 12);
            }
        }
    }
}

/// An operator whose third product throws on rank 0.
class FailsOnRankZero final : public Operator<double> {
  public:
    explicit FailsOnRankZero(Operator<double>& a) : a_(a) {}
    const RowMap& row_map() const override { return a_.row_map(); }
    void apply(Context& ctx, BlockView<const double> x, BlockView<double> y) override {
        if (++calls_ == 3 && ctx.comm().rank() == 0) {
            throw std::runtime_error("no solution today");
        }
        a_.apply(ctx, x, y);
    }

  private:
    Operator<double>& a_;
    int calls_ = 0;
};

TEST(ShiftAndInvert, AnErrorOnOneRankEndsAll) {
    Context ctx = make_context();
    auto a = laplace3d<double>(ctx, 7, 6, 5);
    auto k = diagonal<double>(ctx, std::vector<double>(210, 1.0));
    EigenOptions options = options_for(Method::jacobi_davidson, 4, 1e-9);
    options.which = Which::target;
    options.target = 3.3;
    for (const bool inverse : {false, true}) {
        FailsOnRankZero failing(k);
        EigenProblem<double> problem{a};
        (inverse ? problem.inverse : problem.preconditioner) = &failing;
        std::string said;
        try {
            eigensolve(ctx, problem, options);
        } catch (const std::exception& error) {
            said = error.what();
        }
        EXPECT_EQ(said.find("no solution today") != std::string::npos, ctx.comm().rank() == 0)
            << said;
        EXPECT_NE(said, "");
    }
}

/// Checks the 10 smallest eigenvalues, to 1e-6 of each or to the accuracy of the reference.
template <class T>
void check_hard_end(const std::string& name) {
    SCOPED_TRACE(name);
    if (!std::filesystem::exists(data_file(name + ".mtx.gz"))) {
        GTEST_SKIP() << "no " << data_file(name + ".mtx.gz");
    }
    Context ctx = make_context();
    SparseMatrix<T> a(ctx, read_matrix_market<T>(ctx.comm(), data_file(name + ".mtx.gz")));
    const auto reference = nlohmann::json::parse(std::ifstream(data_file(name + ".eigs.json")));
    const double bound = reference["abs_err_bound"].get<double>();
    const auto k = make_preconditioner(ctx, a, parse_preconditioner("ldlt"));
    EigenProblem<T> problem{a};
    problem.preconditioner = k.get();
    for (const Method method : {Method::jacobi_davidson, Method::lobpcg}) {
        SCOPED_TRACE(to_string(method));
        const auto result = eigensolve(ctx, problem, options_for(method, 10, 1e-14));
        EXPECT_TRUE(result.converged) << result.message;
        ASSERT_EQ(result.eigenvalues.size(), 10u);
        const std::vector<double> residuals = fresh_residuals(ctx, a, result);
        for (std::size_t j = 0; j < 10; ++j) {
            const double exact = reference["smallest"][j].get<double>();
            EXPECT_NEAR(result.eigenvalues[j], exact, std::max(bound, 1e-6 * exact)) << j;
            EXPECT_LE(residuals[j],
                      (result.tolerance + 20 * epsilon_v<double>)*result.norm_estimate)
                << j;
        }
        EXPECT_LE(orthonormality_defect(ctx, BlockView<const T>(result.vectors.view())),
                  100 * epsilon_v<double> * std::sqrt(10.0));
    }
}

/// Condition 1e10. On one rank only: on several ranks the factors are those of diagonal blocks, and
/// the solve takes minutes.
TEST(HardEnds, Bcsstk13) {
    if (Comm(MPI_COMM_WORLD).size() > 1) {
        GTEST_SKIP() << "one rank";
    }
    check_hard_end<double>("bcsstk13");
}

/// Condition 5e12; some eigenvalues agree to 1e-15 of the norm.
TEST(HardEnds, Mhd1280b) {
    check_hard_end<std::complex<double>>("mhd1280b");
}

/// The lowest eigenvalue is 1e-14 of the norm.
TEST(HardEnds, Mhd4800b) {
    check_hard_end<double>("mhd4800b");
}

TEST(HardEnds, PencilOfLund) {
    if (!std::filesystem::exists(data_file("lund_a.mtx.gz"))) {
        GTEST_SKIP() << "no " << data_file("lund_a.mtx.gz");
    }
    Context ctx = make_context();
    const auto dense = [](const char* name) {
        const auto rows = read_matrix_market<double>(Comm(), data_file(name));
        const auto n = static_cast<Eigen::Index>(rows.map.global_rows());
        Eigen::MatrixXd result = Eigen::MatrixXd::Zero(n, n);
        for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
            for (auto e = static_cast<std::size_t>(rows.row_start[i]);
                 e < static_cast<std::size_t>(rows.row_start[i + 1]); ++e) {
                result(static_cast<Eigen::Index>(i), rows.column[e]) = rows.value[e];
            }
        }
        return result;
    };
    const Eigen::VectorXd exact =
        oracle::eigenvalues(dense("lund_a.mtx.gz"), dense("lund_b.mtx.gz"));
    const auto load = [&](const char* name) {
        return SparseMatrix<double>(
            ctx, read_matrix_market<double>(ctx.comm(), data_file(name), Partition::by_rows));
    };
    SparseMatrix<double> a = load("lund_a.mtx.gz");
    SparseMatrix<double> b = load("lund_b.mtx.gz");
    EigenProblem<double> problem{a};
    problem.b = &b;
    for (const bool interior : {false, true}) {
        PreconditionerOptions ldlt = parse_preconditioner("ldlt");
        EigenOptions options = options_for(Method::jacobi_davidson, 6, 1e-13);
        const int first = interior ? 20 : 0;
        if (interior) {
            options.which = Which::target;
            // The target lies halfway between the middles of the two gaps beside the six wanted
            // eigenvalues, so that these six are the nearest.
            options.target = 0.25 * (exact(19) + exact(20) + exact(25) + exact(26));
            ldlt.shift = options.target;
            ldlt.absolute = false;
        }
        const auto m = make_preconditioner(ctx, a, ldlt, &b);
        problem.preconditioner = interior ? nullptr : m.get();
        problem.inverse = interior ? m.get() : nullptr;
        const auto result = eigensolve(ctx, problem, options);
        EXPECT_TRUE(result.converged) << result.message;
        ASSERT_EQ(result.eigenvalues.size(), 6u);
        for (int j = 0; j < 6; ++j) {
            // The error of the dense reference is about eps ||B^-1 A||, relative to the largest
            // eigenvalue.
            const double allowed = 100 * epsilon_v<double> * exact(exact.size() - 1);
            double nearest = std::numeric_limits<double>::infinity();
            for (int i = first; i < first + 6; ++i) {
                nearest = std::min(
                    nearest, std::abs(result.eigenvalues[static_cast<std::size_t>(j)] - exact(i)));
            }
            EXPECT_LE(nearest, allowed) << j << (interior ? " inside" : " at the end");
        }
    }
}

}  // namespace
}  // namespace quiver::test
