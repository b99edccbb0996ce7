// SPDX-License-Identifier: BSD-3-Clause
// Operators on the bits of basis states in a unique form: a sum of products of 1, (-1)^s, raising
// and lowering operators of different bits. Private to kernels/.
#pragma once

#include <complex>
#include <cstdint>
#include <map>
#include <tuple>

#include "kernels/hamiltonian/terms.hpp"

namespace quiver {

/// |s> -> (-1)^(ones of s & sign) |s ^ flip> if s & flip = value, else 0. `sign` and `flip` are
/// disjoint, `value` is in `flip`.
struct BitMove {
    std::uint64_t flip, value, sign;

    bool operator<(const BitMove& other) const {
        return std::tie(flip, value, sign) < std::tie(other.flip, other.value, other.sign);
    }
};

/// A sum of moves with coefficients. Two expressions are the same operator if and only if they have
/// the same coefficients.
using Expression = std::map<BitMove, std::complex<double>>;

/// The sum of the terms; fermions by Jordan and Wigner: a fermion passes those of all lower bits.
Expression expression_of(const HamiltonianModel& model, const std::vector<HamiltonianTerm>& terms);

/// The adjoint operator.
Expression adjoint(const Expression& a);

/// True if the coefficients agree to within rounding errors.
bool same_operator(const Expression& a, const Expression& b);

}  // namespace quiver
