// SPDX-License-Identifier: BSD-3-Clause
// The eigensolve that the interfaces to other languages share: tests whether the operators are
// Hermitian, adds checksums if requested, and solves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/block_vector.hpp"
#include "blockvec/small_matrix.hpp"
#include "c/shared/any_operator.hpp"
#include "c/shared/renumbered.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"
#include "kernels/tsmttsm.hpp"
#include "solvers/abft/protected_matrix.hpp"
#include "solvers/eigen/eigensolver.hpp"

namespace quiver::doors {

/// Returns the norms of the columns of Y. If their squares overflow or underflow, first multiplies
/// Y by a power of two; the norms of a block that is zero or not finite stay 0 or not finite.
template <class T>
std::vector<real_t<T>> scaled_norms(Context& ctx, BlockView<T> y) {
    constexpr int half = std::numeric_limits<real_t<T>>::max_exponent / 2;
    std::vector<real_t<T>> lengths(static_cast<std::size_t>(y.cols));
    norms(ctx, BlockView<const T>(y), std::span<real_t<T>>(lengths));
    const auto largest = static_cast<double>(*std::max_element(lengths.begin(), lengths.end()));
    const bool fits = largest >= NormRange<T>().least && largest <= NormRange<T>().most;
    if (!fits) {
        const int power = largest < NormRange<T>().least ? half : -half;
        scale(ctx, T(std::ldexp(real_t<T>(1), power)), y);
        norms(ctx, BlockView<const T>(y), std::span<real_t<T>>(lengths));
    }
    return lengths;
}

/// Throws InputError unless X^H A X is Hermitian to rounding for a random block X. The expected
/// square of an element of X^H (A - A^H) X is ||A - A^H||_F^2 times a constant. Cost: one product
/// with 4 columns.
template <class T>
void require_hermitian(Context& ctx, Operator<T>& a, const char* name) {
    const int columns = 4;
    BlockVector<T> x(ctx, a.row_map(), columns);
    BlockVector<T> y(ctx, a.row_map(), columns);
    fill_random(ctx, 0x6a09e667u, x);
    a.apply(ctx, std::as_const(x).view(), y.view());
    const std::vector<real_t<T>> y_norm = scaled_norms(ctx, y.view());
    std::vector<real_t<T>> x_norm(columns);
    norms(ctx, x.view(), std::span<real_t<T>>(x_norm));
    SmallMatrix<T> gram(columns, columns);
    tsmttsm(ctx, T(1), std::as_const(x).view(), std::as_const(y).view(), T(0), gram);
    double worst = 0, scale = 0;
    for (int i = 0; i < columns; ++i) {
        scale = std::max(scale, static_cast<double>(x_norm[static_cast<std::size_t>(i)]) *
                                    static_cast<double>(y_norm[static_cast<std::size_t>(i)]));
        for (int j = 0; j < columns; ++j) {
            worst =
                std::max(worst, static_cast<double>(std::abs(gram(i, j) - conjugate(gram(j, i)))));
        }
    }
    if (!std::isfinite(scale)) {
        throw InputError(std::string(name) + " has entries or products that are not finite");
    }
    if (worst > 100 * static_cast<double>(epsilon_v<T>) * scale) {
        char difference[16];
        std::snprintf(difference, sizeof difference, "%.1e", worst / scale);
        throw InputError(std::string(name) +
                         " is not Hermitian: for random x and y, x^H A y and conj(y^H A x) differ "
                         "by " +
                         difference + " ||x|| ||A y||");
    }
}

/// The operators of a problem; null for those that it does not have. All have the scalar of `a`.
struct EigenOperators {
    const AnyOperator* a;
    const AnyOperator* b = nullptr;
    const AnyOperator* preconditioner = nullptr;
    const AnyOperator* inverse = nullptr;
};

/// The operators and options of an eigensolve. The caller of solve() holds the Context's mutex.
struct EigenRequest {
    EigenOperators operators;
    EigenOptions options;
    AbftMode abft = AbftMode::off;
    bool check_hermitian = true;
};

/// Tests A and B for symmetry if `check_hermitian`, adds checksums if `abft` requests them, and
/// solves. Returns the result and the number of silent faults found. All blocks have the caller's
/// numbering; if A has another one, the eigenvectors are in host memory.
template <class T>
std::pair<EigenResult<T>, std::int64_t> solve(Context& ctx, const EigenRequest& request,
                                              BlockView<const T> start,
                                              BlockView<const T> constraints) {
    const EigenOperators& operators = request.operators;
    SparseMatrix<T>* sparse = operators.a->sparse<T>();
    if (request.abft != AbftMode::off && sparse == nullptr) {
        throw InputError("abft: checksums need the entries of A; pass a sparse matrix");
    }
    if (request.check_hermitian) {
        require_hermitian(ctx, operators.a->get<T>(), "A");
        if (operators.b != nullptr) {
            require_hermitian(ctx, operators.b->get<T>(), "M");
        }
    }
    std::optional<ProtectedMatrix<T>> guarded;
    if (request.abft != AbftMode::off) {
        AbftOptions protection;
        protection.mode = request.abft;
        guarded.emplace(ctx, *sparse, protection);
    }
    EigenProblem<T> problem{guarded ? static_cast<Operator<T>&>(*guarded) : operators.a->get<T>()};
    const AnyOperator& a = *operators.a;
    const auto renumbered = [&](const AnyOperator* op, const char* name) {
        return op == nullptr ? AnyOperator() : in_numbering_of<T>(a, *op, name);
    };
    const auto pointer = [](const AnyOperator& op) {
        return op.operation ? &op.get<T>() : nullptr;
    };
    const AnyOperator b = renumbered(operators.b, "M");
    const AnyOperator preconditioner = renumbered(operators.preconditioner, "preconditioner");
    const AnyOperator inverse = renumbered(operators.inverse, "the inverse");
    const Reordering* const numbering = a.numbering.get();
    const RenumberedBlock<T> first(ctx, numbering, start);
    const RenumberedBlock<T> known(ctx, numbering, constraints);
    problem.protection = guarded ? &*guarded : nullptr;
    problem.b = pointer(b);
    problem.preconditioner = pointer(preconditioner);
    problem.inverse = pointer(inverse);
    problem.start = first.view();
    problem.constraints = known.view();
    EigenResult<T> result = eigensolve(ctx, problem, request.options);
    if (numbering != nullptr) {
        result.vectors = numbering->to_user<T>(ctx, std::as_const(result.vectors).view());
    }
    const std::int64_t faults = guarded ? guarded->counts().summed(ctx.comm()).faults : 0;
    return {std::move(result), faults};
}

}  // namespace quiver::doors
