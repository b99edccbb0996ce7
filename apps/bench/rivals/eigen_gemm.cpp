// SPDX-License-Identifier: BSD-3-Clause
// Compiled once for each instruction set; QUIVER_EIGEN_MAKE is the name of the only external
// function.
#include "apps/bench/rivals/eigen_gemm.hpp"

#include <Eigen/Core>

namespace quiver::apps::bench {
namespace {

class EigenGemm final : public Gemm {
  public:
    explicit EigenGemm(int threads) { Eigen::setNbThreads(threads); }
    void run(const GemmCall<float>& call) override { multiply(call); }
    void run(const GemmCall<double>& call) override { multiply(call); }
    void run(const GemmCall<std::complex<float>>& call) override { multiply(call); }
    void run(const GemmCall<std::complex<double>>& call) override { multiply(call); }

  private:
    template <class T>
    using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

    template <class T>
    static auto map(const BlockView<T>& view) {
        using Plain = Matrix<std::remove_const_t<T>>;
        using Mapped = std::conditional_t<std::is_const_v<T>, const Plain, Plain>;
        return Eigen::Map<Mapped, Eigen::Unaligned, Eigen::OuterStride<>>(
            view.data, view.rows, view.cols, Eigen::OuterStride<>(view.ld));
    }

    template <class T>
    static void multiply(const GemmCall<T>& call) {
        auto c = map(call.c);
        const auto a = map(call.a);
        const auto b = map(call.b);
        // Eigen assigns a product by adding it to zeros.
        if (call.beta == T(0)) {
            c.setZero();
        } else {
            c *= call.beta;
        }
        if (call.adjoint) {
            c.noalias() += call.alpha * (a.adjoint() * b);
        } else {
            c.noalias() += call.alpha * (a * b);
        }
    }
};

}  // namespace

std::unique_ptr<Gemm> QUIVER_EIGEN_MAKE(int threads) {
    return std::make_unique<EigenGemm>(threads);
}

}  // namespace quiver::apps::bench
