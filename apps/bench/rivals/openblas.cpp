// SPDX-License-Identifier: BSD-3-Clause
#include <sstream>
#include <string>

#include <cblas.h>

#include "apps/bench/rivals/rival.hpp"

namespace quiver::apps::bench {
namespace {

class OpenBlas final : public Rival, public Gemm {
  public:
    explicit OpenBlas(int threads) { openblas_set_num_threads(threads); }
    const char* name() const override { return "openblas"; }
    /// "0.3.21 Haswell": the release, and the processor of its kernels.
    std::string version() const override {
        std::istringstream words(openblas_get_config());
        std::string name;
        std::string number;
        words >> name >> number;
        return number + ' ' + openblas_get_corename();
    }
    Gemm* gemm() override { return this; }

    void run(const GemmCall<float>& call) override {
        multiply(call, [&](auto... sizes) {
            cblas_sgemm(CblasRowMajor, op(call.adjoint), CblasNoTrans, sizes..., call.alpha,
                        call.a.data, ld(call.a), call.b.data, ld(call.b), call.beta, call.c.data,
                        ld(call.c));
        });
    }
    void run(const GemmCall<double>& call) override {
        multiply(call, [&](auto... sizes) {
            cblas_dgemm(CblasRowMajor, op(call.adjoint), CblasNoTrans, sizes..., call.alpha,
                        call.a.data, ld(call.a), call.b.data, ld(call.b), call.beta, call.c.data,
                        ld(call.c));
        });
    }
    void run(const GemmCall<std::complex<float>>& call) override {
        multiply(call, [&](auto... sizes) {
            cblas_cgemm(CblasRowMajor, op(call.adjoint), CblasNoTrans, sizes..., &call.alpha,
                        call.a.data, ld(call.a), call.b.data, ld(call.b), &call.beta, call.c.data,
                        ld(call.c));
        });
    }
    void run(const GemmCall<std::complex<double>>& call) override {
        multiply(call, [&](auto... sizes) {
            cblas_zgemm(CblasRowMajor, op(call.adjoint), CblasNoTrans, sizes..., &call.alpha,
                        call.a.data, ld(call.a), call.b.data, ld(call.b), &call.beta, call.c.data,
                        ld(call.c));
        });
    }

  private:
    static CBLAS_TRANSPOSE op(bool adjoint) { return adjoint ? CblasConjTrans : CblasNoTrans; }
    template <class T>
    static blasint ld(const BlockView<T>& view) {
        return static_cast<blasint>(view.ld);
    }
    /// f(rows of C, columns of C, length of the sums)
    template <class T, class F>
    static void multiply(const GemmCall<T>& call, F&& f) {
        f(static_cast<blasint>(call.c.rows), static_cast<blasint>(call.c.cols),
          static_cast<blasint>(call.b.rows));
    }
};

}  // namespace

std::unique_ptr<Rival> make_openblas(Context& ctx) {
    return std::make_unique<OpenBlas>(ctx.threads());
}

}  // namespace quiver::apps::bench
