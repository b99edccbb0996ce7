// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "apps/bench/rivals/eigen_gemm.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {
namespace {

class EigenRival final : public Rival {
  public:
    EigenRival(std::unique_ptr<Gemm> gemm, std::unique_ptr<Qr> qr, std::unique_ptr<Spmm> spmm,
               const char* vectors)
        : gemm_(std::move(gemm)), qr_(std::move(qr)), spmm_(std::move(spmm)), vectors_(vectors) {}
    const char* name() const override { return "eigen"; }
    std::string version() const override {
        return std::string(QUIVER_EIGEN_VERSION " ") + vectors_;
    }
    Gemm* gemm() override { return gemm_.get(); }
    Qr* qr() override { return qr_.get(); }
    Spmm* spmm() override { return spmm_.get(); }

  private:
    std::unique_ptr<Gemm> gemm_;
    std::unique_ptr<Qr> qr_;
    std::unique_ptr<Spmm> spmm_;
    const char* vectors_;
};

}  // namespace

std::unique_ptr<Rival> make_eigen(Context& ctx) {
#if defined(QUIVER_EIGEN_avx512)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
        return std::make_unique<EigenRival>(make_eigen_gemm_avx512(ctx.threads()),
                                            make_eigen_qr_avx512(), make_eigen_spmm_avx512(),
                                            "AVX-512");
    }
#endif
#if defined(QUIVER_EIGEN_avx2)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return std::make_unique<EigenRival>(make_eigen_gemm_avx2(ctx.threads()),
                                            make_eigen_qr_avx2(), make_eigen_spmm_avx2(), "AVX2");
    }
#endif
#if defined(QUIVER_EIGEN_baseline)
    return std::make_unique<EigenRival>(make_eigen_gemm_baseline(ctx.threads()),
                                        make_eigen_qr_baseline(), make_eigen_spmm_baseline(), "");
#else
    throw UnsupportedError(
        "--rivals eigen: this processor lacks the instructions that Eigen was compiled for (AVX2, "
        "or AVX-512 of the machine that built it); configure the build on this machine");
#endif
}

}  // namespace quiver::apps::bench
