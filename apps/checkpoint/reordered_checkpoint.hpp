// SPDX-License-Identifier: BSD-3-Clause
// ReorderedCheckpoint: saves the states of a reordered problem in the user's numbering.
#pragma once

#include <memory>

#include "kernels/sparse/reordering.hpp"
#include "solvers/eigen/solver_state.hpp"

namespace quiver::apps {

/// A checkpoint whose blocks have the user's numbering on the disk and the solver's in the solver,
/// so that a run with another partition or other ranks can resume. Both arguments must outlive it.
/// Memory of save(): a copy of all blocks in host memory.
template <class T>
class ReorderedCheckpoint final : public Checkpoint<T> {
  public:
    ReorderedCheckpoint(Checkpoint<T>& inner, const Reordering& reordering);
    ~ReorderedCheckpoint() override;

    bool due() override;
    const SavedState<T>* saved() const override;
    void save(Context& ctx, const SolverState<T>& state) override;

  private:
    class State;
    Checkpoint<T>& inner_;
    const Reordering& reordering_;
    std::unique_ptr<State> saved_;
};

}  // namespace quiver::apps
