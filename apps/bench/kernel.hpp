// SPDX-License-Identifier: BSD-3-Clause
// What a kernel must say to be timed: its costs, its operands, its reference. One file in kernels/
// each, and one line in kernel_table.cpp.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/bench/case.hpp"
#include "apps/bench/rivals/rival.hpp"
#include "blockvec/context.hpp"
#include "blockvec/view.hpp"
#include "kernels/ceilings.hpp"
#include "kernels/operations/cost.hpp"

namespace quiver::apps::bench {

using AnyBlock = std::variant<BlockView<float>, BlockView<double>, BlockView<std::complex<float>>,
                              BlockView<std::complex<double>>>;

/// The operands of one case, as many sets of them as it takes to pass a number of bytes, so that
/// calls that take the sets in turn find none of them in a cache.
class Workload {
  public:
    virtual ~Workload() = default;
    virtual std::int64_t sets() const = 0;
    /// Outputs become NaN; operands that a call updates get their first values again.
    virtual void reset() = 0;
    /// Of kernels that cannot work on their own results: how many calls in a row find fresh inputs
    /// (those of all sets); restore(), outside every timing, makes all inputs fresh again.
    virtual std::int64_t most_calls() const { return std::numeric_limits<std::int64_t>::max(); }
    virtual void restore() {}
    /// One call of this library, of which results stay where the Context works.
    virtual void run(std::int64_t set) = 0;
    /// Whether the rival can do the same; makes what it needs beside the operands.
    virtual bool has(Rival&) { return false; }
    /// One call of the rival on the same operands.
    virtual void run(Rival&, std::int64_t) {}
    /// The largest |computed - reference| / bound of the results in `set`, infinity where one is
    /// not finite. `calls` (at least 1) have worked on that set since the last reset.
    virtual double error(std::int64_t set, std::int64_t calls) = 0;
    /// What a call writes.
    virtual AnyBlock output(std::int64_t set) = 0;
};

class Kernel {
  public:
    virtual ~Kernel() = default;
    /// As on the command line.
    virtual const char* name() const = 0;
    virtual const char* formula() const = 0;
    /// Whether it has two widths, m and n; the others have n alone (and m = n).
    virtual bool has_two_widths() const { return false; }
    /// Whether it runs by a plan on a device, and whether that may leave its sums to atomics.
    virtual bool has_plans() const { return false; }
    virtual bool has_atomics() const { return false; }
    /// The scalars that it can have.
    virtual bool takes(Dtype scalar) const { return scalar != Dtype::h && scalar != Dtype::b; }
    /// The stream of memory that it is held against.
    virtual Traffic traffic() const = 0;
    /// The least traffic of one call and its real operations, as the ledger counts them.
    virtual Cost cost(const Case& c) const = 0;
    double bytes(const Case& c) const { return cost(c).bytes; }
    double flops(const Case& c) const { return cost(c).flops; }
    /// Bytes that a row of the operands takes.
    virtual double row_bytes(const Case& c) const = 0;
    /// The largest m of MxN; n is 512 at most.
    virtual int most_columns() const { return 512; }
    /// Rows that make operands of so many bytes; those of the case are not known yet.
    virtual std::int64_t default_rows(const Case& c, double bytes) const {
        return std::max(static_cast<std::int64_t>(bytes / row_bytes(c)), std::int64_t{1});
    }
    /// Whether few rows are little work, which is held against a time instead of the roofline.
    virtual bool few_rows_are_short() const { return true; }
    /// The rows that it can have: at most as many as asked for, unless it takes some at least.
    virtual std::int64_t round_rows(std::int64_t rows) const { return rows; }
    /// Of the operands' default size: less where making them takes long.
    virtual double size_factor() const { return 1; }
    /// `least_bytes`: of all sets together. Throws MemoryError.
    virtual std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                              double least_bytes) const = 0;
};

/// All kernels, in the order in which `quiver bench all` takes them.
std::span<const Kernel* const> all_kernels();
/// "tsmm", "tsmttsm,tsmm", "all". Throws InputError that names the kernels.
std::vector<const Kernel*> parse_kernels(const std::string& text);
/// Null when there is none.
const Kernel* find_kernel(std::string_view name);

}  // namespace quiver::apps::bench
