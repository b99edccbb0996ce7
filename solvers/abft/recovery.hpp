// SPDX-License-Identifier: BSD-3-Clause
// recover: the one sequence that follows an alarm of any protected operation.
#pragma once

#include <cstring>

#include "blockvec/small_matrix.hpp"
#include "solvers/abft/operand.hpp"

namespace quiver {

template <class T>
bool same_bits(const Checksum<T>& a, const Checksum<T>& b) {
    return a.same(b);
}
template <class T>
bool same_bits(const SmallMatrix<T>& a, const SmallMatrix<T>& b) {
    const auto elements = static_cast<std::size_t>(a.rows()) * static_cast<std::size_t>(a.cols());
    return elements == 0 || std::memcmp(a.data(), b.data(), elements * sizeof(T)) == 0;
}

/// How the repetitions of an operation have ended.
template <class Result>
struct Recovery {
    Result now{};  // of the last repetition
    OperandRepair operands;
    bool fault = true;   // false: rounding explains the alarm
    bool agreed = true;  // false: no repetition agreed with its checksums, nor with another one
};

/// Counts an alarm and repeats the operation, up to three times. `first` is the result that raised
/// it, or its checksums; again() repeats the operation and returns the same of the new result.
/// - If agrees(new result) is true, the first result was wrong, and the new one is right.
/// - Otherwise repair() compares the operands with their checksums, repairs them with `correct`,
///   and updates the expected values of agrees(). If it finds a fault, `detect` ends here.
/// - The same result twice, with sound operands, is rounding; if it is not the first result, or if
///   operands were wrong before, there was a fault as well.
/// Everything is local to the rank. The caller counts the fault (OperationGuard::count_fault).
template <class Result, class Again, class Agrees, class Repair>
Recovery<Result> recover(OperationGuard& guard, const Result& first, Again&& again, Agrees&& agrees,
                         Repair&& repair) {
    constexpr int most_attempts = 3;
    ++guard.counts.alarms;
    Recovery<Result> end;
    Result previous = first;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        end.now = again();
        if (agrees(end.now)) {
            return end;
        }
        const OperandRepair operands = repair();
        end.operands.add(operands);
        if (operands.found > 0) {
            if (!guard.writes()) {
                return end;
            }
        } else if (agrees(end.now)) {
            return end;  // the checksums themselves were wrong
        } else if (same_bits(end.now, first) || same_bits(end.now, previous)) {
            ++guard.counts.rounding;
            end.fault = end.operands.found > 0 || !same_bits(end.now, first);
            return end;
        }
        previous = end.now;
    }
    end.agreed = false;
    return end;
}

}  // namespace quiver
