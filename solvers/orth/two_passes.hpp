// SPDX-License-Identifier: BSD-3-Clause
// Two passes of block Gram-Schmidt without host synchronisation: all small results stay in the
// Context's place and are checked later.
#pragma once

#include <array>
#include <optional>

#include "blockvec/context.hpp"
#include "blockvec/host_copy.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"
#include "solvers/orth/block_gram_schmidt.hpp"

namespace quiver {

/// The usual two passes of block_gram_schmidt with default options,
///
///     C_i = V^H W,  W <- W - V C_i,  G_i = W^H W = R_i^H R_i,  W <- W R_i^-1,   i = 1, 2
///     W_in = V (C_1 + C_2 R_1) + W (R_2 R_1)
///
/// enqueued without waiting: the host receives C, G and R by one copy in finish(), so that a solver
/// can enqueue its next step before finish(). finish() then checks the decisions that
/// block_gram_schmidt makes between its passes (a missing direction, SVQB instead of Cholesky, a
/// third pass). If a decision would have been different, the contents of W are lost and the caller
/// must compute the block again.
///
/// Up to two calls may be in flight. A reduction over ranks that goes through the host waits for
/// the stream.
template <class T>
class TwoPasses {
  public:
    /// Allocates memory for V of up to `max_basis` columns and W of up to `max_width` columns, at
    /// most 64. Not collective; throws MemoryError.
    TwoPasses(Context& ctx, int max_basis, int max_width);

    /// V: rows x p, orthonormal; W: rows x w; both in the Context's place, not overlapping. Cost:
    /// two passes of block_gram_schmidt, 4 all-reduces; no wait on one rank. The first pass omits
    /// the first `skipped` columns of V, to which the caller knows W to be orthogonal up to
    /// rounding; the second pass, with all columns, shows if W is not.
    void begin(BlockView<const T> v, BlockView<T> w, int skipped = 0) {
        project(v, w, skipped);
        begin_projected(v, w, skipped);
    }
    /// First part of begin(): C_1 = V^H W, which changes neither block. A repeated call replaces
    /// C_1.
    void project(BlockView<const T> v, BlockView<const T> w, int skipped = 0);
    /// Second part of begin(), with the same arguments.
    void begin_projected(BlockView<const T> v, BlockView<T> w, int skipped = 0);

    enum class Verdict : std::uint8_t {
        /// The result equals that of block_gram_schmidt after two passes.
        sound,
        /// NaN, infinity or squares that overflow in W.
        not_finite,
        /// W must be computed again and orthonormalised by block_gram_schmidt.
        unsound,
    };
    struct Outcome {
        Verdict verdict = Verdict::unsound;
        OrthResult<T> result = {};
    };
    /// Waits for the oldest call in flight and returns its outcome, the same on all ranks.
    /// later_work: whether work other than another call was enqueued after it.
    Outcome finish(bool later_work = false);
    int under_way() const { return under_way_; }

  private:
    using Real = real_t<T>;
    struct Shape {
        int p = 0;
        int n = 0;
        int skipped = 0;
    };
    /// The matrices of a call, one after the other: C_1, C_2, G_1, R_1, G_2, R_2.
    template <class U>
    struct Parts {
        BlockView<U> c[2], g[2], r[2];
        Parts(U* data, const Shape& shape, Place place);
    };
    static std::size_t elements(const Shape& shape);
    Parts<T> parts_of(const Shape& shape) const {
        return Parts<T>(memory_.template as<T>(), shape, ctx_.place());
    }
    Verdict judge(const Parts<const T>& parts, const Shape& shape) const;

    Context& ctx_;
    Buffer memory_;
    Buffer inverse_;
    HostCopy first_, second_;
    std::array<Shape, 2> shape_;
    int oldest_ = 0;
    int under_way_ = 0;
};

}  // namespace quiver
