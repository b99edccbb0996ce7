// SPDX-License-Identifier: BSD-3-Clause
// FaultInjector: flips bits on purpose, for tests of fault detection and repair and for
// demonstrations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// Where a fault may be injected.
enum class FaultPlace : std::uint8_t {
    /// The block that a product reads, before the product.
    input,
    /// The block that a product has computed.
    output,
    /// An entry of the matrix.
    matrix,
    /// The data that the checks compare with: column sums of the matrix.
    guard,
    /// A basis of a solver, between its uses.
    basis,
};
constexpr int fault_places = 5;
/// "input", "output", "matrix", "guard", "basis".
const char* to_string(FaultPlace place);

struct InjectOptions {
    /// The probability of one fault at each place, in each step, on each rank; 0: no faults.
    double rate = 0;
    /// Enabled places, indexed by FaultPlace.
    bool where[fault_places] = {false, true, false, false, false};
    /// Range of bits of a real number that may flip; bit 0 is the last bit of the mantissa;
    /// high_bit -1: the highest bit.
    int low_bit = 0;
    int high_bit = -1;
    std::uint64_t seed = 1;
    /// The only rank and the only step (from 1) that get faults; -1: all.
    int rank = -1;
    std::int64_t step = -1;
};

/// Parses "rate=0.01,where=output+matrix,bit=any,seed=7,rank=0,step=3"; each key at most once.
/// `bit` may also be one number or LOW-HIGH, `where` may be `all`. Throws InputError naming the
/// wrong part.
InjectOptions parse_injection(const std::string& text);

/// One bit that was flipped.
struct InjectedFault {
    FaultPlace place = FaultPlace::output;
    std::int64_t step = 0;
    /// Row and column of a block, or the index of an array's entry and 0.
    std::int64_t row = 0;
    int column = 0;
    /// 0: real part, 1: imaginary part.
    int part = 0;
    int bit = 0;
    /// The real number before and after the flip.
    double before = 0;
    double after = 0;
};

/// Injects faults deterministically: a fault depends only on the seed, the place, the step and the
/// rank.
class FaultInjector {
  public:
    explicit FaultInjector(const InjectOptions& options = {}) : options_(options) {}

    const InjectOptions& options() const { return options_; }
    /// Sets the current step; one step is one product of the operator.
    void set_step(std::int64_t step) { step_ = step; }
    /// Flips one bit of one element with the probability of the options. Returns true if a bit was
    /// flipped; the call then waits for the stream.
    template <class T>
    bool strike(Context& ctx, FaultPlace place, BlockView<T> block);
    /// The fault that strike() would inject; `before` and `after` are not set.
    template <class T>
    std::optional<InjectedFault> draw(Context& ctx, FaultPlace place, BlockView<T> block) const;
    /// Records a fault of draw() that the caller has injected into a number.
    template <class T>
    void record(InjectedFault fault, real_t<T> before);

    const std::vector<InjectedFault>& faults() const { return faults_; }

  private:
    InjectOptions options_;
    std::int64_t step_ = 0;
    std::vector<InjectedFault> faults_;
};

}  // namespace quiver
