// SPDX-License-Identifier: BSD-3-Clause
// All operations: the name of each in messages and in the ledger, its leaves, and its form under a
// BlockPolicy or the reason why it has none. Private to kernels/.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/leaves.hpp"

namespace quiver {

/// The protection of an operation with a protected form: under a policy, hand_over(policy, ctx,
/// arguments...) calls the function of BlockOperations<T> in place of the kernel.
template <class HandOver>
struct Protected {
    HandOver hand_over;
};
template <class HandOver>
Protected(HandOver) -> Protected<HandOver>;

/// The protection of an operation that never goes through a policy, with the reason.
struct Unprotected {
    const char* reason;
};

template <class Leaf, class Protection>
struct Operation {
    const char* name;
    Leaf leaf;
    Protection protection;

    static constexpr bool is_protected() { return !std::is_same_v<Protection, Unprotected>; }
};
template <class Leaf, class Protection>
Operation(const char*, Leaf, Protection) -> Operation<Leaf, Protection>;

namespace operations {

/// scale under a policy: X = alpha X is axpby with beta = 0.
struct ScaleAsAxpby {
    template <class Policy, class T>
    void operator()(Policy& policy, Context& ctx, T alpha, BlockView<T> x) const {
        policy.axpby(ctx, alpha, x, T(0), x);
    }
    template <class Policy, class T>
    void operator()(Policy& policy, Context& ctx, std::span<const T> alpha, BlockView<T> x) const {
        const std::vector<T> zeros(static_cast<std::size_t>(x.cols), T(0));
        policy.axpby(ctx, alpha, x, std::span<const T>(zeros), x);
    }
};

inline constexpr Unprotected several_scalars{
    "BlockOperations has one scalar, the product has several"};
inline constexpr Unprotected kept_sums{
    "solvers/abft/protected_dense.hpp protects it with checksums of the large matrix"};
inline constexpr Unprotected batch_twice{
    "solvers/abft/protected_batches.hpp protects it by a second factorisation"};
inline constexpr Unprotected batch_factors_only{
    "of the operations on batches only factorisations have a protected form"};
inline constexpr Unprotected small_result{
    "the result is one number per column, too few for a checksum"};
inline constexpr Unprotected no_arithmetic{
    "it moves elements without arithmetic, and later operations check their operands"};
inline constexpr Unprotected is_a_check{"the checks themselves use it"};

inline constexpr Operation tsmttsm{
    "tsmttsm", QUIVER_LEAF(tsmttsm),
    Protected{[](auto& policy, auto&... given) { policy.tsmttsm(given...); }}};
inline constexpr Operation weighted_tsmttsm{
    "weighted_tsmttsm", QUIVER_LEAF(weighted_tsmttsm),
    Unprotected{"BlockOperations has no weights; the solvers form no weighted product"}};
inline constexpr Operation tsmttsm_mixed{"tsmttsm", QUIVER_LEAF(tsmttsm_mixed), several_scalars};
inline constexpr Operation tsmttsm_twofold{"tsmttsm_twofold", QUIVER_LEAF(tsmttsm_twofold),
                                           Unprotected{"BlockOperations has no sums of two parts"}};
inline constexpr Operation gram_twofold{"gram_twofold", QUIVER_LEAF(gram_twofold),
                                        Unprotected{"BlockOperations has no sums of two parts"}};
inline constexpr Operation tsmm{
    "tsmm", QUIVER_LEAF(tsmm),
    Protected{[](auto& policy, auto&... given) { policy.tsmm(given...); }}};
inline constexpr Operation tsmm_mixed{"tsmm", QUIVER_LEAF(tsmm_mixed), several_scalars};
inline constexpr Operation tsmm_columns{"tsmm", QUIVER_LEAF(mtsm),
                                        Unprotected{"BlockOperations has row-major blocks only"}};
inline constexpr Operation tsmm_gram{
    "tsmm_gram", QUIVER_LEAF(tsmm_gram),
    Protected{[](auto& policy, auto&... given) { policy.tsmm_gram(given...); }}};
inline constexpr Operation mtsm{"mtsm", QUIVER_LEAF(mtsm), kept_sums};
inline constexpr Operation mtsm_adjoint{"mtsm_adjoint", QUIVER_LEAF(mtsm), kept_sums};
inline constexpr Operation spmmv{
    "spmmv", QUIVER_LEAF(spmmv),
    Unprotected{"solvers/abft/protected_matrix.hpp protects it with checksums of the matrix"}};
inline constexpr Operation axpby{
    "axpby", QUIVER_LEAF(axpby),
    Protected{[](auto& policy, auto&... given) { policy.axpby(given...); }}};
inline constexpr Operation scale{"scale", QUIVER_LEAF(axpby), Protected{ScaleAsAxpby{}}};
inline constexpr Operation dots{"dots", QUIVER_LEAF(dots), small_result};
inline constexpr Operation gather_columns{"gather_columns", QUIVER_LEAF(gather_columns),
                                          no_arithmetic};
inline constexpr Operation gather_rows{"gather_rows", QUIVER_LEAF(gather_rows), no_arithmetic};
inline constexpr Operation copy{"copy", QUIVER_LEAF(convert), no_arithmetic};
inline constexpr Operation fill{"fill", QUIVER_LEAF(fill), no_arithmetic};
inline constexpr Operation fill_random{
    "fill_random", QUIVER_LEAF(fill_random),
    Unprotected{"it has no operand to check the result against"}};
inline constexpr Operation gram_factor{
    "gram_factor", QUIVER_LEAF(gram_factor),
    Unprotected{"its matrices are small, and the orthogonality of the result is measured"}};
inline constexpr Operation kmeans_step{
    "kmeans_step", QUIVER_LEAF(kmeans_step),
    Unprotected{"the next step of the iteration computes all its results anew"}};
inline constexpr Operation shifted_gram{
    "shifted_gram", QUIVER_LEAF(shifted_gram),
    Unprotected{"BlockOperations has no shift; solvers under a policy form no covariances"}};
inline constexpr Operation hamiltonian{
    "hamiltonian", QUIVER_LEAF(hamiltonian),
    Unprotected{"it has no stored entries; its result has no checksum"}};
inline constexpr Operation checksum{"checksum", QUIVER_LEAF(checksum), is_a_check};
inline constexpr Operation parity{"parity", QUIVER_LEAF(parity), is_a_check};
inline constexpr Operation lu_factor{"lu_factor", QUIVER_LEAF(lu_factor), batch_twice};
inline constexpr Operation lu_solve{"lu_solve", QUIVER_LEAF(batched_solve), batch_factors_only};
inline constexpr Operation lu_inverse{"lu_inverse", QUIVER_LEAF(batched_solve), batch_factors_only};
inline constexpr Operation lu_determinant{"lu_determinant", QUIVER_LEAF(batched_determinant),
                                          batch_factors_only};
inline constexpr Operation cholesky_factor{"cholesky_factor", QUIVER_LEAF(cholesky_factor),
                                           batch_twice};
inline constexpr Operation cholesky_solve{"cholesky_solve", QUIVER_LEAF(batched_solve),
                                          batch_factors_only};
inline constexpr Operation cholesky_inverse{"cholesky_inverse", QUIVER_LEAF(batched_solve),
                                            batch_factors_only};
inline constexpr Operation cholesky_log_determinant{
    "cholesky_log_determinant", QUIVER_LEAF(batched_determinant), batch_factors_only};

/// The name and the protection of an operation, independent of its types.
struct Summary {
    const void* operation;
    std::string_view name;
    bool is_protected;
    std::string_view reason;  // empty if it is protected
};

template <class Leaf, class Protection>
constexpr Summary summary_of(const Operation<Leaf, Protection>& operation) {
    if constexpr (Operation<Leaf, Protection>::is_protected()) {
        return {&operation, operation.name, true, ""};
    } else {
        return {&operation, operation.name, false, operation.protection.reason};
    }
}

/// Every operation.
inline constexpr std::array all{summary_of(tsmttsm),
                                summary_of(weighted_tsmttsm),
                                summary_of(tsmttsm_mixed),
                                summary_of(tsmttsm_twofold),
                                summary_of(gram_twofold),
                                summary_of(tsmm),
                                summary_of(tsmm_mixed),
                                summary_of(tsmm_columns),
                                summary_of(tsmm_gram),
                                summary_of(mtsm),
                                summary_of(mtsm_adjoint),
                                summary_of(spmmv),
                                summary_of(axpby),
                                summary_of(scale),
                                summary_of(dots),
                                summary_of(gather_columns),
                                summary_of(gather_rows),
                                summary_of(copy),
                                summary_of(fill),
                                summary_of(fill_random),
                                summary_of(gram_factor),
                                summary_of(kmeans_step),
                                summary_of(shifted_gram),
                                summary_of(hamiltonian),
                                summary_of(checksum),
                                summary_of(parity),
                                summary_of(lu_factor),
                                summary_of(lu_solve),
                                summary_of(lu_inverse),
                                summary_of(lu_determinant),
                                summary_of(cholesky_factor),
                                summary_of(cholesky_solve),
                                summary_of(cholesky_inverse),
                                summary_of(cholesky_log_determinant)};

constexpr bool is_listed(const void* operation) {
    for (const Summary& summary : all) {
        if (summary.operation == operation) {
            return true;
        }
    }
    return false;
}

}  // namespace operations
}  // namespace quiver
