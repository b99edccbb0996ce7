// SPDX-License-Identifier: BSD-3-Clause
// The state of an eigensolver between two iterations, and the interface that stores it. Solvers do
// not access files.
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

/// Finite numbers by name, equal on all ranks; counters are whole numbers up to 2^53.
using StateNumbers = std::map<std::string, std::vector<double>>;

/// The largest value of a counter in a state.
constexpr std::int64_t most_count = std::int64_t{1} << 53;

/// Everything that a solver needs to resume, except the problem itself.
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

/// A state read back. Its contents are those that were saved, but they may not fit the solver. The
/// functions below and the solver check this and throw InputError, identically on all ranks.
template <class T>
class SavedState {
  public:
    SavedState(std::string solver, StateNumbers numbers, std::string origin)
        : solver_(std::move(solver)), numbers_(std::move(numbers)), origin_(std::move(origin)) {}
    SavedState& operator=(const SavedState&) = delete;
    virtual ~SavedState() = default;

    const std::string& solver() const { return solver_; }
    bool has(const std::string& name) const { return numbers_.count(name) > 0; }
    const std::vector<double>& values(const std::string& name) const;
    /// Throws unless there are exactly `count` values.
    const std::vector<double>& values(const std::string& name, std::int64_t count) const;
    double number(const std::string& name) const;
    /// An integer from `least` to `most`.
    std::int64_t whole(const std::string& name, std::int64_t least, std::int64_t most) const;
    int count(const std::string& name, std::int64_t most) const;
    bool flag(const std::string& name) const { return count(name, 1) == 1; }
    /// value <- the number of that name; throws if it does not fit into V (an integer or bool).
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
    /// Throws unless the state was saved by this solver.
    void require_solver(const std::string& name) const;
    [[noreturn]] void refuse(const std::string& why) const;

    /// X <- this rank's rows of a block of X.cols columns, in the place of X. The row distribution
    /// may differ from that of the ranks that saved the state. Collective.
    virtual void read(Context& ctx, const std::string& block, BlockView<T> x) const = 0;
    virtual SmallMatrix<T> matrix(Context& ctx, const std::string& name, int rows,
                                  int cols) const = 0;

  protected:
    /// For a derived class that wraps another state and converts its blocks.
    SavedState(const SavedState&) = default;

  private:
    std::string solver_;
    StateNumbers numbers_;
    std::string origin_;
};

/// Decides when a state is to be saved.
class CheckpointClock {
  public:
    virtual ~CheckpointClock() = default;
    /// True if this rank requests the solver's next state. Called after each iteration. A request
    /// of one rank is enough; it shares the all-reduce of keep_going.
    virtual bool due() = 0;
};

/// Where solvers save their states (EigenProblem::checkpoint). A solver calls save() between
/// iterations if the clock has asked, and once when it ends early: out of iterations, or stopped by
/// keep_going. If saved() is not null, the solver resumes from that state and does not compute
/// locked pairs again.
template <class T>
class Checkpoint : public CheckpointClock {
  public:
    /// The state from which to resume, or null. It must outlive the solve.
    virtual const SavedState<T>* saved() const { return nullptr; }
    /// Collective. The views are valid during the call only. An exception ends the solve: do not
    /// throw for a recoverable failure such as a full disk.
    virtual void save(Context& ctx, const SolverState<T>& state) = 0;
};

}  // namespace quiver
