// SPDX-License-Identifier: BSD-3-Clause
// The numbers of a solver's state, listed once for saving and restoring. Private to solvers/eigen.
#pragma once

#include <vector>

#include "solvers/eigen/solver_state.hpp"

namespace quiver {

/// Called with the name and the variable of each number that a checkpoint has: writes the variable
/// to a state, or sets it from one. Throws the errors of SavedState.
template <class T>
class StateVisit {
  public:
    explicit StateVisit(StateNumbers& out) : out_(&out) {}
    explicit StateVisit(const SavedState<T>& in) : in_(&in) {}

    template <class V>
    void operator()(const char* name, V& value) const {
        if (in_ != nullptr) {
            in_->take(name, value);
        } else {
            (*out_)[name] = {static_cast<double>(value)};
        }
    }
    void operator()(const char* name, std::vector<double>& values) const {
        if (in_ != nullptr) {
            values = in_->values(name);
        } else {
            (*out_)[name] = values;
        }
    }
    /// The same for a number that older states lack: the variable then keeps its value.
    template <class V>
    void optional(const char* name, V& value) const {
        if (in_ == nullptr || in_->has(name)) {
            (*this)(name, value);
        }
    }

  private:
    StateNumbers* out_ = nullptr;
    const SavedState<T>* in_ = nullptr;
};

}  // namespace quiver
