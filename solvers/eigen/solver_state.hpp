// SPDX-License-Identifier: BSD-3-Clause
// The state of an eigensolver between two iterations, and who keeps it. Solvers know no files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/small_matrix.hpp"
#include "blockvec/view.hpp"

namespace quiver {

/// Finite numbers by name, equal on all ranks; counters are whole numbers below 2^53.
using StateNumbers = std::map<std::string, std::vector<double>>;

/// The most that a counter of a state may be.
constexpr std::int64_t most_count = std::int64_t{1} << 53;

/// What a solver needs to go on where it was: of the problem itself nothing.
template <class T>
struct SolverState {
    /// "lanczos", "chebyshev", "lobpcg", "jd", "filter".
    std::string solver;
    StateNumbers numbers;
    /// Projected matrices, equal on all ranks.
    std::map<std::string, SmallMatrix<T>> matrices;
    /// This rank's rows of blocks of vectors, in the place of the Context.
    std::map<std::string, BlockView<const T>> blocks;
};

/// A state that was saved. What it holds was checked to be what was saved, not to make sense to the
/// solver: that is what the functions here and the solver itself look at. They throw InputError,
/// alike on all ranks.
template <class T>
class SavedState {
  public:
    SavedState(std::string solver, StateNumbers numbers, std::string origin)
        : solver_(std::move(solver)), numbers_(std::move(numbers)), origin_(std::move(origin)) {}
    SavedState(const SavedState&) = delete;
    SavedState& operator=(const SavedState&) = delete;
    virtual ~SavedState() = default;

    const std::string& solver() const { return solver_; }
    const std::vector<double>& values(const std::string& name) const;
    /// Of as many as wanted.
    const std::vector<double>& values(const std::string& name, std::int64_t count) const;
    double number(const std::string& name) const;
    /// A whole number from `least` to `most`.
    std::int64_t whole(const std::string& name, std::int64_t least, std::int64_t most) const;
    int count(const std::string& name, std::int64_t most) const;
    bool flag(const std::string& name) const { return count(name, 1) == 1; }
    /// value <- the number of that name; one that fits, where V is a whole number or a flag.
    template <class V>
    void take(const std::string& name, V& value) const {
        if constexpr (std::is_floating_point_v<V>) {
            value = number(name);
        } else if constexpr (std::is_same_v<V, bool>) {
            value = flag(name);
        } else {
            constexpr auto most =
                std::min<std::uint64_t>(std::numeric_limits<V>::max(), most_count);
            value = static_cast<V>(whole(name, -1, static_cast<std::int64_t>(most)));
        }
    }
    /// Throws unless the state is one of this solver.
    void require_solver(const std::string& name) const;
    [[noreturn]] void refuse(const std::string& why) const;

    /// X <- this rank's rows of a block of X.cols columns, whatever the ranks that wrote it had, in
    /// the place of X. Collective.
    virtual void read(Context& ctx, const std::string& block, BlockView<T> x) const = 0;
    virtual SmallMatrix<T> matrix(Context& ctx, const std::string& name, int rows,
                                  int cols) const = 0;

  private:
    std::string solver_;
    StateNumbers numbers_;
    std::string origin_;
};

/// Asks for states.
class CheckpointClock {
  public:
    virtual ~CheckpointClock() = default;
    /// This rank wants the solver's next state. Called after each iteration; one rank that wants it
    /// is enough, and the word rides in the sum that asks keep_going.
    virtual bool due() = 0;
};

/// Where solvers leave their states (EigenProblem::checkpoint). A solver calls save() between
/// iterations when the clock asked, and once when it ends early: out of iterations, or because
/// keep_going said so. One that finds saved() goes on from there and not from the beginning: locked
/// pairs are not computed again.
template <class T>
class Checkpoint : public CheckpointClock {
  public:
    /// The state to go on from, or null. Outlives the solve.
    virtual const SavedState<T>* saved() const { return nullptr; }
    /// Collective. Views are good during the call. What it throws ends the solve: a disk that is
    /// full should not.
    virtual void save(Context& ctx, const SolverState<T>& state) = 0;
};

}  // namespace quiver
