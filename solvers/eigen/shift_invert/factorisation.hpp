// SPDX-License-Identifier: BSD-3-Clause
// The interface through which shift-invert uses a sparse factorisation, and its implementation by
// SparseLdlt. Private to solvers/eigen.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "blockvec/view.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/precond/sparse_ldlt.hpp"

namespace quiver {

/// The facts about a factorisation A - sigma B = L D L^H.
struct FactorFacts {
    /// If false, there are no factors and no counts.
    bool complete = false;
    /// Negative and zero eigenvalues of D.
    std::int64_t below = 0;
    std::int64_t zero = 0;
    /// The least |eigenvalue| of D; infinity if unknown.
    double least_pivot = std::numeric_limits<double>::infinity();
    /// A bound of ||A - sigma B - L D L^H||_2, if known.
    std::optional<double> error;

    bool is_positive_definite() const { return complete && below == 0 && zero == 0; }
};

/// Factorises one shifted matrix after another. Each factorisation replaces the one before.
template <class W>
class Factorisation {
  public:
    Factorisation() = default;
    Factorisation(const Factorisation&) = delete;
    Factorisation& operator=(const Factorisation&) = delete;
    virtual ~Factorisation() = default;

    /// Factorises A - sigma B (null: B = I) from all rows of both, Hermitian and with the same
    /// patterns in every call. Throws MemoryError.
    virtual FactorFacts factor(const CsrRows<W>& a, const CsrRows<W>* b, double sigma) = 0;
    /// X <- (A - sigma B)^-1 X with the last factors, for X in host memory.
    virtual void solve(BlockView<W> x) = 0;
};

/// SparseLdlt: no pivoting, up to most_ldlt_rows rows, one thread.
template <class W>
class LdltFactorisation final : public Factorisation<W> {
  public:
    FactorFacts factor(const CsrRows<W>& a, const CsrRows<W>* b, double sigma) override;
    void solve(BlockView<W> x) override { ldlt_->solve(x); }

  private:
    std::unique_ptr<const SparseLdlt<W>> ldlt_;
};

}  // namespace quiver
