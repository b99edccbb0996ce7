// SPDX-License-Identifier: BSD-3-Clause
// From the arguments of a product to the kernel that the planner chooses, and its launch.
#pragma once

#include <cstdint>

#include "blockvec/error.hpp"
#include "kernels/cuda/planner.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/leaf_args.hpp"

namespace quiver::cuda {

/// The shape of a product, the layouts of its operands, and their bytes.
struct OperandsOf {
    Served own;
    std::int64_t bytes;

    template <class T>
    OperandsOf(const TsmttsmArgs<T>& args)
        : OperandsOf(ProductShape(dtype_v<T>, args.m, args.n,
                                  args.a == args.b && args.lda == args.ldb && args.m == args.n),
                     args.rows, args.m, args.a, args.lda, args.n, args.b, args.ldb) {}
    template <class T>
    OperandsOf(const TsmmArgs<T>& args)
        : OperandsOf(args.d == nullptr ? ProductShape(dtype_v<T>, args.m, args.n)
                                       : ProductShape::pair(dtype_v<T>, args.m, args.n),
                     args.rows, args.m, args.x, args.ldx, args.n, args.y, args.ldy) {}
    template <class T>
    OperandsOf(const TsmmGramArgs<T>& args) : OperandsOf(args.update) {
        own.shape.adds = args.update.beta != T(0);
    }

  private:
    template <class T>
    OperandsOf(const ProductShape& shape, std::int64_t rows, int m, const T* a, std::int64_t lda,
               int n, const T* b, std::int64_t ldb)
        : own{shape, Layout::of(a, m, lda, sizeof(T)), Layout::of(b, n, ldb, sizeof(T))},
          bytes(rows * (m + n) * std::int64_t{sizeof(T)}) {}
};

/// The request for the kernel that the library uses for a product.
inline Served served(const Planner& planner, const OperandsOf& operands) {
    const auto& [shape, a, b] = operands.own;
    return planner.served(shape, operands.bytes, a, b);
}

/// The kernel of a given plan. Throws DeviceError if the plan is not legal.
template <class Plan>
PlannedKernel kernel_for(Context& ctx, const typename Plan::Request& request, const Plan& plan) {
    const auto kernel = kernel_of(plan, request, ctx.service<Planner>().machine());
    if (!kernel) {
        throw DeviceError("the plan \"" + to_text(plan) + "\" does not fit " +
                          Planner::name<Plan>(request));
    }
    return *kernel;
}

inline Kernel& load(Context& ctx, const PlannedKernel& planned) {
    return ctx.service<Specialiser>().get(ctx, planned.source, planned.expression);
}

/// At least `blocks` blocks, the same number for each of the kernel's classes of rows.
inline unsigned blocks_for_classes(const PlannedKernel& planned, unsigned blocks) {
    const auto classes = static_cast<unsigned>(planned.row_classes);
    return (blocks + classes - 1) / classes * classes;
}

inline LaunchShape launch_shape(const PlannedKernel& planned, unsigned blocks) {
    return {.blocks = blocks,
            .threads = static_cast<unsigned>(planned.threads),
            .shared_bytes = planned.shared_bytes};
}

}  // namespace quiver::cuda
