// SPDX-License-Identifier: BSD-3-Clause
// The interface of a timed kernel: its cost, its operands and its reference. Each kernel has a file
// in kernels/, whose list kernel_table.cpp appends to the table.
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

/// The operands of one case, in enough sets that together they exceed a given number of bytes:
/// calls that use the sets in turn then find none of them in a cache.
class Workload {
  public:
    virtual ~Workload() = default;
    virtual std::int64_t sets() const = 0;
    /// Sets outputs to NaN, and operands that a call updates to their initial values.
    virtual void reset() = 0;
    /// The number of successive calls, over all sets, that find intact inputs; limited for kernels
    /// that overwrite their inputs. restore(), which is never timed, restores all inputs.
    virtual std::int64_t most_calls() const { return std::numeric_limits<std::int64_t>::max(); }
    virtual void restore() {}
    /// One call of this library. Its results stay in the Context's place, unless the operation
    /// returns them in host memory.
    virtual void run(std::int64_t set) = 0;
    /// Whether the rival has this operation. Also prepares what the rival needs in addition to the
    /// operands.
    virtual bool has(Rival&) { return false; }
    /// One call of the rival on the same operands.
    virtual void run(Rival&, std::int64_t) {}
    /// The largest |computed - reference| / bound of the results in `set`; infinity if a result is
    /// not finite. `calls` (at least 1) is the number of calls on that set since the last reset.
    virtual double error(std::int64_t set, std::int64_t calls) = 0;
    /// The block that a call writes.
    virtual AnyBlock output(std::int64_t set) = 0;
};

class Kernel {
  public:
    virtual ~Kernel() = default;
    /// The name on the command line.
    virtual const char* name() const = 0;
    virtual const char* formula() const = 0;
    /// Whether the kernel has two widths, m and n; other kernels have only n (and m = n).
    virtual bool has_two_widths() const { return false; }
    /// Whether the kernel runs by a plan on a device, and whether a plan may reduce by atomics.
    virtual bool has_plans() const { return false; }
    virtual bool has_atomics() const { return false; }
    /// Whether the kernel has a form for this scalar.
    virtual bool takes(Dtype scalar) const { return scalar != Dtype::h && scalar != Dtype::b; }
    /// The memory stream whose speed is the kernel's ceiling.
    virtual Traffic traffic() const = 0;
    /// The least traffic of one call and its real operations, as the ledger counts them.
    virtual Cost cost(const Case& c) const = 0;
    double bytes(const Case& c) const { return cost(c).bytes; }
    double flops(const Case& c) const { return cost(c).flops; }
    /// Bytes that a row of the operands takes.
    virtual double row_bytes(const Case& c) const = 0;
    /// The largest m of MxN; n is 512 at most.
    virtual int most_columns() const { return 512; }
    /// The rows that make operands of `bytes`; c.rows is not yet known.
    virtual std::int64_t default_rows(const Case& c, double bytes) const {
        return std::max(static_cast<std::int64_t>(bytes / row_bytes(c)), std::int64_t{1});
    }
    /// False for a kernel that only runs if its name is given.
    virtual bool belongs_to_all() const { return true; }
    /// Whether few rows mean little work. Short blocks of such kernels are compared with a limit in
    /// seconds instead of the roofline.
    virtual bool few_rows_are_short() const { return true; }
    /// The nearest number of rows that the kernel accepts: at most `rows`, or the kernel's minimum.
    virtual std::int64_t round_rows(std::int64_t rows) const { return rows; }
    /// Factor on the default size of the operands: less than 1 if preparing them takes long.
    virtual double size_factor() const { return 1; }
    /// Prepares the operands; all sets together have at least `least_bytes`. Throws MemoryError.
    virtual std::unique_ptr<Workload> prepare(Context& ctx, const Case& c,
                                              double least_bytes) const = 0;
};

/// All kernels, in the order in which `quiver bench kernels all` runs those that belong to it.
std::span<const Kernel* const> all_kernels();
/// "tsmm", "tsmttsm,tsmm", "all". Throws InputError that names the kernels.
std::vector<const Kernel*> parse_kernels(const std::string& text);
/// The kernel with this name; null if there is none.
const Kernel* find_kernel(std::string_view name);

}  // namespace quiver::apps::bench
