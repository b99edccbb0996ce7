// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/factorisation.hpp"

#include <algorithm>
#include <cmath>
#include <complex>

namespace quiver {

template <class W>
FactorFacts LdltFactorisation<W>::factor(const CsrRows<W>& a, const CsrRows<W>* b, double sigma) {
    ldlt_.reset();
    ldlt_ = std::make_unique<const SparseLdlt<W>>(a, b, sigma);
    FactorFacts facts;
    facts.complete = ldlt_->complete();
    if (facts.complete) {
        for (const double pivot : ldlt_->pivots()) {
            facts.below += pivot < 0 ? 1 : 0;
            facts.zero += pivot < 0 || pivot > 0 ? 0 : 1;
            facts.least_pivot = std::min(facts.least_pivot, std::abs(pivot));
        }
        facts.error = ldlt_->error();
    }
    return facts;
}

template class LdltFactorisation<double>;
template class LdltFactorisation<std::complex<double>>;

}  // namespace quiver
