// SPDX-License-Identifier: BSD-3-Clause
// The list of the public scalars, for explicit instantiation and for objects that exist once for
// each scalar.
#pragma once

#include <complex>
#include <tuple>
#include <type_traits>

/// Expands f(T) for each of the four public scalars, for instantiations as follows.
//     #define QUIVER_INSTANTIATE(T) template void fill(Context&, T, BlockView<T>);
//     QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
//     #undef QUIVER_INSTANTIATE
#define QUIVER_FOR_EACH_SCALAR(f) f(float) f(double) f(std::complex<float>) f(std::complex<double>)

namespace quiver {

/// One F<T> for each public scalar T.
template <template <class> class F>
class PerScalar {
  public:
    PerScalar() = default;
    /// Every F<T> is constructed from the same argument.
    template <class Argument>
    requires(!std::is_same_v<std::remove_const_t<Argument>, PerScalar>) explicit PerScalar(
        Argument& argument)
        : objects_(Scalars::make(argument)) {}

    template <class T>
    F<T>& get() {
        return std::get<F<T>>(objects_);
    }
    template <class T>
    const F<T>& get() const {
        return std::get<F<T>>(objects_);
    }
    /// Calls f(object) for each scalar.
    template <class Function>
    void for_each(const Function& f) {
        std::apply([&](auto&... object) { (f(object), ...); }, objects_);
    }

  private:
    // QUIVER_NEXT_SCALAR puts a comma before every scalar, so the list starts with another type.
    template <class None, class... T>
    struct List {
        using Objects = std::tuple<F<T>...>;
        template <class Argument>
        static Objects make(Argument& argument) {
            return Objects{F<T>(argument)...};
        }
    };
#define QUIVER_NEXT_SCALAR(T) , T
    using Scalars = List<void QUIVER_FOR_EACH_SCALAR(QUIVER_NEXT_SCALAR)>;
#undef QUIVER_NEXT_SCALAR

    typename Scalars::Objects objects_{};
};

}  // namespace quiver
