// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/solver_state.hpp"

#include <cmath>

#include "blockvec/error.hpp"
#include "blockvec/scalar_list.hpp"

namespace quiver {

template <class T>
void SavedState<T>::refuse(const std::string& why) const {
    InputError error(origin_ + ": " + why);
    error.set_collective();  // all ranks hold the same numbers
    throw error;
}

template <class T>
void SavedState<T>::require_solver(const std::string& name) const {
    if (solver_ != name) {
        refuse("the state was saved by " + solver_ + ", but this run uses " + name);
    }
}

template <class T>
const std::vector<double>& SavedState<T>::values(const std::string& name) const {
    const auto at = numbers_.find(name);
    if (at == numbers_.end()) {
        refuse("the state of " + solver_ + " has no " + name);
    }
    return at->second;
}

template <class T>
const std::vector<double>& SavedState<T>::values(const std::string& name,
                                                 std::int64_t count) const {
    const std::vector<double>& all = values(name);
    if (static_cast<std::int64_t>(all.size()) != count) {
        refuse("the state of " + solver_ + " has " + std::to_string(all.size()) + " numbers " +
               name + ", but " + std::to_string(count) + " are wanted");
    }
    return all;
}

template <class T>
double SavedState<T>::number(const std::string& name) const {
    return values(name, 1).front();
}

template <class T>
std::int64_t SavedState<T>::whole(const std::string& name, std::int64_t least,
                                  std::int64_t most) const {
    const double value = number(name);
    if (!(value >= static_cast<double>(least) && value <= static_cast<double>(most)) ||
        value != std::floor(value)) {
        refuse("the state of " + solver_ + " has " + std::to_string(value) + " for " + name +
               "; a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
               " is wanted");
    }
    return static_cast<std::int64_t>(value);
}

template <class T>
int SavedState<T>::count(const std::string& name, std::int64_t most) const {
    return static_cast<int>(whole(name, 0, most));
}

#define QUIVER_INSTANTIATE(T) template class SavedState<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
