// SPDX-License-Identifier: BSD-3-Clause
// The checkpoint of a solver that runs inside another solver. Private to solvers/eigen.
#pragma once

#include <utility>

#include "solvers/eigen/solver_state.hpp"

namespace quiver {

/// Passes the inner solver's states on to the outer checkpoint, with numbers of the outer solver
/// added.
template <class T>
class AnnotatedCheckpoint : public Checkpoint<T> {
  public:
    /// `outer` may be null; `saved`: the state from which the inner solver resumes, or null.
    AnnotatedCheckpoint(Checkpoint<T>* outer, StateNumbers numbers, const SavedState<T>* saved)
        : outer_(outer), numbers_(std::move(numbers)), saved_(saved) {}

    bool due() override { return outer_ != nullptr && outer_->due(); }
    const SavedState<T>* saved() const override { return saved_; }
    void save(Context& ctx, const SolverState<T>& state) override {
        if (outer_ != nullptr) {
            SolverState<T> all = state;
            all.numbers.insert(numbers_.begin(), numbers_.end());
            outer_->save(ctx, all);
        }
    }

  private:
    Checkpoint<T>* outer_;
    StateNumbers numbers_;
    const SavedState<T>* saved_;
};

}  // namespace quiver
