// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/hamiltonian/expression.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/operations/hamiltonian.hpp"

namespace quiver {
namespace {

using Complex = std::complex<double>;

double sign_of(bool negative) {
    return negative ? -1.0 : 1.0;
}

/// Adds coefficient a b, b acts first, to `sum`.
void add_product(const BitMove& a, const BitMove& b, Complex coefficient, Expression& sum) {
    const std::uint64_t both = a.flip & b.flip;
    if (((a.value ^ b.value ^ both) & both) != 0) {
        return;
    }
    // The bits whose values the product knows, and these values before it acts.
    const std::uint64_t known = a.flip | b.flip;
    const std::uint64_t value = b.value | (a.value & ~b.flip);
    const std::uint64_t sign = a.sign ^ b.sign;
    coefficient *= sign_of(is_odd(a.sign & b.flip) != is_odd(sign & known & value));
    const std::uint64_t flip = a.flip ^ b.flip;
    // A bit that flips twice leaves a projector, (1 + (1 - 2 value) (-1)^s) / 2.
    coefficient *= std::ldexp(1.0, -count_ones(both));
    for (std::uint64_t part = both;; part = (part - 1) & both) {
        sum[{flip, value & flip, (sign & ~known) | part}] +=
            coefficient * sign_of(is_odd(part & value));
        if (part == 0) {
            break;
        }
    }
}

Expression product(const Expression& a, const Expression& b) {
    Expression sum;
    for (const auto& [left, left_coefficient] : a) {
        for (const auto& [right, right_coefficient] : b) {
            add_product(left, right, left_coefficient * right_coefficient, sum);
        }
    }
    return sum;
}

Expression expression_of_one(const HamiltonianModel& model, const SiteOperator& one) {
    const std::uint64_t bit = std::uint64_t{1} << model.bit_of(one);
    const std::uint64_t passed = model.particles == Particles::spins ? 0 : bit - 1;
    const BitMove raise{bit, 0, passed};
    const BitMove lower{bit, bit, passed};
    switch (one.action) {
        case '+':
            return {{raise, 1.0}};
        case '-':
            return {{lower, 1.0}};
        case 'x':
            return {{raise, 0.5}, {lower, 0.5}};
        case 'y':
            return {{raise, Complex(0, -0.5)}, {lower, Complex(0, 0.5)}};
        case 'z':
            return {{{0, 0, bit}, -0.5}};
        default:  // n
            return {{{0, 0, 0}, 0.5}, {{0, 0, bit}, -0.5}};
    }
}

double largest_coefficient(const Expression& a) {
    double largest = 0;
    for (const auto& [move, coefficient] : a) {
        largest = std::max(largest, std::abs(coefficient));
    }
    return largest;
}

/// Rounding errors of a sum of a few hundred terms, relative to the largest coefficient.
constexpr double rounding = 1e-13;

}  // namespace

Expression expression_of(const HamiltonianModel& model, const std::vector<HamiltonianTerm>& terms) {
    Expression sum;
    for (const HamiltonianTerm& term : terms) {
        Expression factors{{{0, 0, 0}, term.coefficient}};
        for (const SiteOperator& one : term.operators) {
            factors = product(factors, expression_of_one(model, one));
        }
        for (const auto& [move, coefficient] : factors) {
            sum[move] += coefficient;
        }
    }
    const double least = rounding * largest_coefficient(sum);
    std::erase_if(sum, [&](const auto& entry) { return std::abs(entry.second) <= least; });
    return sum;
}

Expression adjoint(const Expression& a) {
    Expression result;
    for (const auto& [move, coefficient] : a) {
        result[{move.flip, move.value ^ move.flip, move.sign}] = std::conj(coefficient);
    }
    return result;
}

bool same_operator(const Expression& a, const Expression& b) {
    const double most = rounding * std::max(largest_coefficient(a), largest_coefficient(b));
    const auto covers = [&](const Expression& all, const Expression& others) {
        return std::all_of(all.begin(), all.end(), [&](const auto& entry) {
            const auto found = others.find(entry.first);
            return std::abs(entry.second - (found == others.end() ? 0.0 : found->second)) <= most;
        });
    };
    return covers(a, b) && covers(b, a);
}

}  // namespace quiver
