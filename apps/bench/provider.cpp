// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/provider.hpp"

#include "kernels/column_ops.hpp"
#include "kernels/tsmm.hpp"
#include "kernels/tsmttsm.hpp"

namespace quiver::apps::bench {
namespace {

template <class T>
class Quiver final : public Provider<T> {
  public:
    const char* name() const override { return "quiver"; }
    void run(Context& ctx, Kernel kernel, const Operands<T>& operands) override {
        switch (kernel) {
            case Kernel::tsmttsm:
                tsmttsm(ctx, T(1), operands.x, operands.y, T(0), operands.small);
                return;
            case Kernel::tsmm:
                tsmm(ctx, T(1), operands.x, operands.small, T(0), operands.y);
                return;
            case Kernel::axpby:
                axpby(ctx, T(static_cast<real_t<T>>(axpby_alpha)), operands.x,
                      T(static_cast<real_t<T>>(axpby_beta)), operands.y);
                return;
            case Kernel::dots:
                dots(ctx, operands.x, operands.y, operands.result);
                return;
            case Kernel::spmmv:
                spmmv(ctx, *operands.matrix, operands.x, operands.y);
                return;
        }
    }
};

}  // namespace

template <class T>
Providers<T> make_providers() {
    Providers<T> providers;
    providers.push_back(std::make_unique<Quiver<T>>());
    return providers;
}

template Providers<float> make_providers();
template Providers<double> make_providers();
template Providers<std::complex<float>> make_providers();
template Providers<std::complex<double>> make_providers();

}  // namespace quiver::apps::bench
