// SPDX-License-Identifier: BSD-3-Clause
// Who runs a case: this library, or a rival that gets the very same operands.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "apps/bench/case.hpp"
#include "blockvec/context.hpp"
#include "blockvec/view.hpp"
#include "kernels/sparse/sparse_matrix.hpp"

namespace quiver::apps::bench {

/// axpby is Y = axpby_alpha X + axpby_beta Y.
inline constexpr double axpby_alpha = -1.5;
inline constexpr double axpby_beta = 0.5;

/// What one call works on, all views in the Context's place; those that a kernel does not name are
/// empty.
///   tsmttsm  small = X^H Y          X: rows x m, Y: rows x n, small: m x n
///   tsmm     Y = X small            X: rows x m, small: m x n, Y: rows x n
///   axpby    Y = alpha X + beta Y   both rows x n
///   dots     result[j] = x_j^H y_j  both rows x n
///   spmmv    Y = A X                both rows x n
template <class T>
struct Operands {
    BlockView<T> x;
    BlockView<T> y;
    BlockView<T> small;
    std::span<T> result;
    SparseMatrix<T>* matrix = nullptr;
};

template <class T>
class Provider {
  public:
    virtual ~Provider() = default;
    /// As the column `provider` tells it.
    virtual const char* name() const = 0;
    /// Whether it has this case at all; one that it has not gets no row.
    virtual bool can_run(const Context&, const Case&) const { return true; }
    /// One call; on a device it is enqueued on the Context's stream.
    virtual void run(Context& ctx, Kernel kernel, const Operands<T>& operands) = 0;
};

template <class T>
using Providers = std::vector<std::unique_ptr<Provider<T>>>;

/// All providers of this build: "quiver", the public functions of kernels/.
template <class T>
Providers<T> make_providers();

}  // namespace quiver::apps::bench
