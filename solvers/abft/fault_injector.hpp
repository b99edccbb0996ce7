// SPDX-License-Identifier: BSD-3-Clause
// Flips bits on purpose: for tests of what finds and mends them, and for users who want to see it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// Where a fault may strike.
enum class FaultPlace : std::uint8_t {
    /// The block that a product reads, before it does.
    input,
    /// The block that a product has made.
    output,
    /// An entry of the matrix.
    matrix,
    /// What the checks compare with: column sums of the matrix.
    guard,
    /// A basis of a solver, between its uses.
    basis,
};
constexpr int fault_places = 5;
/// "input", "output", "matrix", "guard", "basis".
const char* to_string(FaultPlace place);

struct InjectOptions {
    /// The probability of one fault at each place in each step of each rank; 0: none.
    double rate = 0;
    /// By FaultPlace.
    bool where[fault_places] = {false, true, false, false, false};
    /// Bits of a real number that may flip, 0 the last of the mantissa; -1: up to the highest.
    int low_bit = 0;
    int high_bit = -1;
    std::uint64_t seed = 1;
    /// The only rank and step (from 1) that are struck; -1: all.
    int rank = -1;
    std::int64_t step = -1;
};

/// "rate=0.01,where=output+matrix,bit=any,seed=7,rank=0,step=3", each key once at most; bit also as
/// one number or LOW-HIGH, where also as `all`. Throws InputError that names what is wrong.
InjectOptions parse_injection(const std::string& text);

/// One bit that was flipped.
struct InjectedFault {
    FaultPlace place = FaultPlace::output;
    std::int64_t step = 0;
    /// Row and column of a block, or entry of an array and 0.
    std::int64_t row = 0;
    int column = 0;
    /// 0: real, 1: imaginary part.
    int part = 0;
    int bit = 0;
    /// The real number that was there, and what became of it.
    double before = 0;
    double after = 0;
};

/// Deterministic: what a step of a rank gets depends on the seed, the place, the step and the rank
/// alone.
class FaultInjector {
  public:
    explicit FaultInjector(const InjectOptions& options = {}) : options_(options) {}

    const InjectOptions& options() const { return options_; }
    /// From here on this is step `step`, one product of the operator.
    void set_step(std::int64_t step) { step_ = step; }
    /// Perhaps flips one bit of one element. True if it did. Waits for the stream then.
    template <class T>
    bool strike(Context& ctx, FaultPlace place, BlockView<T> block);

    const std::vector<InjectedFault>& faults() const { return faults_; }

  private:
    InjectOptions options_;
    std::int64_t step_ = 0;
    std::vector<InjectedFault> faults_;
};

}  // namespace quiver
