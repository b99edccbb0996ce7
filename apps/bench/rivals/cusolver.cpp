// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include <cusolverDn.h>

#include "apps/bench/rivals/rival.hpp"
#include "blockvec/error.hpp"
#include "blockvec/shared_library.hpp"

namespace quiver::apps::bench {
namespace {

class CuSolver final : public Rival, public Batched {
  public:
    explicit CuSolver(Context& ctx) {
        check(library_.find<decltype(cusolverDnCreate)>("cusolverDnCreate")(&handle_),
              "cusolverDnCreate");
        check(library_.find<decltype(cusolverDnSetStream)>("cusolverDnSetStream")(handle_,
                                                                                  ctx.stream()),
              "cusolverDnSetStream");
        int version = 0;
        check(library_.find<decltype(cusolverGetVersion)>("cusolverGetVersion")(&version),
              "cusolverGetVersion");
        version_ = std::to_string(version / 1000) + "." + std::to_string(version / 100 % 10) + "." +
                   std::to_string(version % 100);
    }
    CuSolver(const CuSolver&) = delete;
    CuSolver& operator=(const CuSolver&) = delete;
    ~CuSolver() override {
        static_cast<void>(library_.find<decltype(cusolverDnDestroy)>("cusolverDnDestroy")(handle_));
    }

    const char* name() const override { return "cusolver"; }
    std::string version() const override { return version_; }
    Batched* batched_cholesky() override { return this; }
    void run(const BatchedCall<float>& call) override { factor<float>(spotrf_, call); }
    void run(const BatchedCall<double>& call) override { factor<double>(dpotrf_, call); }
    void run(const BatchedCall<std::complex<float>>& call) override {
        factor<cuComplex>(cpotrf_, call);
    }
    void run(const BatchedCall<std::complex<double>>& call) override {
        factor<cuDoubleComplex>(zpotrf_, call);
    }

  private:
    static void check(cusolverStatus_t status, const char* what) {
        if (status != CUSOLVER_STATUS_SUCCESS) {
            throw DeviceError(std::string(what) + ": cusolverStatus " +
                              std::to_string(static_cast<int>(status)));
        }
    }

    template <class V, class Function, class T>
    void factor(Function* potrf, const BatchedCall<T>& call) {
        check(potrf(handle_, CUBLAS_FILL_MODE_LOWER, call.n,
                    reinterpret_cast<V**>(const_cast<T**>(call.pointers)), call.n, call.status,
                    call.count),
              "cusolver potrfBatched");
    }

    SharedLibrary library_{"libcusolver.so." + std::to_string(CUSOLVER_VER_MAJOR)};
    cusolverDnHandle_t handle_ = nullptr;
    std::string version_;
    decltype(cusolverDnSpotrfBatched)* spotrf_ =
        library_.find<decltype(cusolverDnSpotrfBatched)>("cusolverDnSpotrfBatched");
    decltype(cusolverDnDpotrfBatched)* dpotrf_ =
        library_.find<decltype(cusolverDnDpotrfBatched)>("cusolverDnDpotrfBatched");
    decltype(cusolverDnCpotrfBatched)* cpotrf_ =
        library_.find<decltype(cusolverDnCpotrfBatched)>("cusolverDnCpotrfBatched");
    decltype(cusolverDnZpotrfBatched)* zpotrf_ =
        library_.find<decltype(cusolverDnZpotrfBatched)>("cusolverDnZpotrfBatched");
};

}  // namespace

std::unique_ptr<Rival> make_cusolver(Context& ctx) {
    return std::make_unique<CuSolver>(ctx);
}

}  // namespace quiver::apps::bench
