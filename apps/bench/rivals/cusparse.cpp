// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include <cusparse.h>

#include "apps/bench/rivals/rival.hpp"
#include "blockvec/error.hpp"
#include "blockvec/shared_library.hpp"

namespace quiver::apps::bench {
namespace {

/// One algorithm of cusparseSpMM or, for blocks of one column without gaps, of cusparseSpMV. The
/// fastest depends on the matrix and the width, so the rival times a few calls of each and keeps
/// the fastest.
struct Algorithm {
    bool one_column;
    cusparseSpMMAlg_t block;
    cusparseSpMVAlg_t column;
};

constexpr Algorithm algorithms[] = {{false, CUSPARSE_SPMM_CSR_ALG1, {}},
                                    {false, CUSPARSE_SPMM_CSR_ALG2, {}},
                                    {false, CUSPARSE_SPMM_CSR_ALG3, {}},
                                    {true, {}, CUSPARSE_SPMV_CSR_ALG1},
                                    {true, {}, CUSPARSE_SPMV_CSR_ALG2}};
constexpr int trial_calls = 5;

class CuSparse final : public Rival, public Spmm {
  public:
    explicit CuSparse(Context& ctx) : ctx_(ctx) {
        check(create_(&handle_), "cusparseCreate");
        check(set_stream_(handle_, ctx.stream()), "cusparseSetStream");
        int version = 0;
        check(get_version_(handle_, &version), "cusparseGetVersion");
        version_ = std::to_string(version / 1000) + "." + std::to_string(version / 100 % 10) + "." +
                   std::to_string(version % 100);
    }
    CuSparse(const CuSparse&) = delete;
    CuSparse& operator=(const CuSparse&) = delete;
    ~CuSparse() override {
        forget();
        static_cast<void>(destroy_(handle_));
    }

    const char* name() const override { return "cusparse"; }
    std::string version() const override { return version_; }
    Spmm* spmm() override { return this; }
    void run(const SpmmCall<float>& call) override { multiply(call, CUDA_R_32F); }
    void run(const SpmmCall<double>& call) override { multiply(call, CUDA_R_64F); }
    void run(const SpmmCall<std::complex<float>>& call) override { multiply(call, CUDA_C_32F); }
    void run(const SpmmCall<std::complex<double>>& call) override { multiply(call, CUDA_C_64F); }

  private:
    void check(cusparseStatus_t status, const char* what) const {
        if (status != CUSPARSE_STATUS_SUCCESS) {
            throw DeviceError(std::string(what) + ": " + error_name_(status));
        }
    }

    void forget() {
        if (matrix_ != nullptr) {
            static_cast<void>(destroy_sparse_(matrix_));
            static_cast<void>(destroy_dense_(x_));
            static_cast<void>(destroy_dense_(y_));
            static_cast<void>(destroy_vector_(x_column_));
            static_cast<void>(destroy_vector_(y_column_));
            matrix_ = nullptr;
            x_column_ = y_column_ = nullptr;
        }
    }

    template <class T>
    void describe(const SpmmCall<T>& call, cudaDataType type) {
        check(create_csr_(&matrix_, call.x.rows, call.x.rows, call.nonzeros,
                          const_cast<std::int32_t*>(call.row_start),
                          const_cast<std::int32_t*>(call.column), const_cast<T*>(call.value),
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type),
              "cusparseCreateCsr");
        check(create_dense_(&x_, call.x.rows, call.x.cols, call.x.ld, const_cast<T*>(call.x.data),
                            type, CUSPARSE_ORDER_ROW),
              "cusparseCreateDnMat");
        check(create_dense_(&y_, call.y.rows, call.y.cols, call.y.ld, call.y.data, type,
                            CUSPARSE_ORDER_ROW),
              "cusparseCreateDnMat");
        if (call.x.cols == 1 && call.x.ld == 1 && call.y.ld == 1) {
            check(create_vector_(&x_column_, call.x.rows, const_cast<T*>(call.x.data), type),
                  "cusparseCreateDnVec");
            check(create_vector_(&y_column_, call.y.rows, call.y.data, type),
                  "cusparseCreateDnVec");
        }
    }

    /// The bytes of an algorithm's buffer; false if it does not support this product.
    template <class T>
    bool find_buffer(const Algorithm& algorithm, cudaDataType type, std::size_t& bytes) {
        alignas(16) const T one(1);  // the alignment of cuDoubleComplex
        alignas(16) const T zero(0);
        if (algorithm.one_column) {
            return x_column_ != nullptr &&
                   column_buffer_size_(handle_, no_transpose, &one, matrix_, x_column_, &zero,
                                       y_column_, type, algorithm.column,
                                       &bytes) == CUSPARSE_STATUS_SUCCESS;
        }
        return buffer_size_(handle_, no_transpose, no_transpose, &one, matrix_, x_, &zero, y_, type,
                            algorithm.block, &bytes) == CUSPARSE_STATUS_SUCCESS;
    }

    template <class T>
    bool preprocess(const Algorithm& algorithm, cudaDataType type, void* buffer) {
        alignas(16) const T one(1);
        alignas(16) const T zero(0);
        if (algorithm.one_column) {
            return column_preprocess_(handle_, no_transpose, &one, matrix_, x_column_, &zero,
                                      y_column_, type, algorithm.column,
                                      buffer) == CUSPARSE_STATUS_SUCCESS;
        }
        return preprocess_(handle_, no_transpose, no_transpose, &one, matrix_, x_, &zero, y_, type,
                           algorithm.block, buffer) == CUSPARSE_STATUS_SUCCESS;
    }

    template <class T>
    bool multiply_once(const Algorithm& algorithm, cudaDataType type, void* buffer) {
        alignas(16) const T one(1);
        alignas(16) const T zero(0);
        if (algorithm.one_column) {
            return spmv_(handle_, no_transpose, &one, matrix_, x_column_, &zero, y_column_, type,
                         algorithm.column, buffer) == CUSPARSE_STATUS_SUCCESS;
        }
        return spmm_(handle_, no_transpose, no_transpose, &one, matrix_, x_, &zero, y_, type,
                     algorithm.block, buffer) == CUSPARSE_STATUS_SUCCESS;
    }

    template <class T>
    void choose_algorithm(cudaDataType type) {
        double best = std::numeric_limits<double>::infinity();
        for (const Algorithm& algorithm : algorithms) {
            std::size_t bytes = 0;
            if (!find_buffer<T>(algorithm, type, bytes)) {
                continue;
            }
            Buffer buffer = ctx_.allocate(MemoryKind::device, bytes, "cusparse");
            if (!preprocess<T>(algorithm, type, buffer.as<void>()) ||
                !multiply_once<T>(algorithm, type, buffer.as<void>())) {
                continue;
            }
            ctx_.synchronize();
            const auto start = std::chrono::steady_clock::now();
            for (int i = 0; i < trial_calls; ++i) {
                static_cast<void>(multiply_once<T>(algorithm, type, buffer.as<void>()));
            }
            ctx_.synchronize();
            const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
            if (seconds.count() < best) {
                best = seconds.count();
                algorithm_ = algorithm;
                buffer_ = std::move(buffer);
            }
        }
        if (!std::isfinite(best)) {
            throw DeviceError("cusparse: none of its algorithms for CSR supports this product");
        }
    }

    /// The first product with a matrix is a warm-up call: it chooses the algorithm and prepares the
    /// library's data for that matrix.
    template <class T>
    void multiply(const SpmmCall<T>& call, cudaDataType type) {
        // A later matrix may have the address of an earlier one.
        const auto signature = std::tuple(static_cast<const void*>(call.value), call.nonzeros,
                                          call.x.rows, call.x.cols, type);
        if (matrix_ == nullptr || signature_ != signature) {
            forget();
            describe(call, type);
            choose_algorithm<T>(type);
            signature_ = signature;
        }
        check(set_values_(x_, const_cast<T*>(call.x.data)), "cusparseDnMatSetValues");
        check(set_values_(y_, call.y.data), "cusparseDnMatSetValues");
        if (x_column_ != nullptr) {
            check(set_vector_(x_column_, const_cast<T*>(call.x.data)), "cusparseDnVecSetValues");
            check(set_vector_(y_column_, call.y.data), "cusparseDnVecSetValues");
        }
        if (!multiply_once<T>(algorithm_, type, buffer_.as<void>())) {
            throw DeviceError("cusparse: the product failed");
        }
    }

    template <class F>
    F* find(const char* name) const {
        return library_.find<F>(name);
    }

    static constexpr cusparseOperation_t no_transpose = CUSPARSE_OPERATION_NON_TRANSPOSE;
    Context& ctx_;
    SharedLibrary library_{"libcusparse.so." + std::to_string(CUSPARSE_VER_MAJOR)};
    decltype(cusparseCreate)* create_ = find<decltype(cusparseCreate)>("cusparseCreate");
    decltype(cusparseDestroy)* destroy_ = find<decltype(cusparseDestroy)>("cusparseDestroy");
    decltype(cusparseSetStream)* set_stream_ =
        find<decltype(cusparseSetStream)>("cusparseSetStream");
    decltype(cusparseGetVersion)* get_version_ =
        find<decltype(cusparseGetVersion)>("cusparseGetVersion");
    decltype(cusparseGetErrorName)* error_name_ =
        find<decltype(cusparseGetErrorName)>("cusparseGetErrorName");
    decltype(cusparseCreateCsr)* create_csr_ =
        find<decltype(cusparseCreateCsr)>("cusparseCreateCsr");
    decltype(cusparseCreateDnMat)* create_dense_ =
        find<decltype(cusparseCreateDnMat)>("cusparseCreateDnMat");
    decltype(cusparseDestroySpMat)* destroy_sparse_ =
        find<decltype(cusparseDestroySpMat)>("cusparseDestroySpMat");
    decltype(cusparseDestroyDnMat)* destroy_dense_ =
        find<decltype(cusparseDestroyDnMat)>("cusparseDestroyDnMat");
    decltype(cusparseDnMatSetValues)* set_values_ =
        find<decltype(cusparseDnMatSetValues)>("cusparseDnMatSetValues");
    decltype(cusparseSpMM_bufferSize)* buffer_size_ =
        find<decltype(cusparseSpMM_bufferSize)>("cusparseSpMM_bufferSize");
    decltype(cusparseSpMM_preprocess)* preprocess_ =
        find<decltype(cusparseSpMM_preprocess)>("cusparseSpMM_preprocess");
    decltype(cusparseSpMM)* spmm_ = find<decltype(cusparseSpMM)>("cusparseSpMM");
    decltype(cusparseCreateDnVec)* create_vector_ =
        find<decltype(cusparseCreateDnVec)>("cusparseCreateDnVec");
    decltype(cusparseDestroyDnVec)* destroy_vector_ =
        find<decltype(cusparseDestroyDnVec)>("cusparseDestroyDnVec");
    decltype(cusparseDnVecSetValues)* set_vector_ =
        find<decltype(cusparseDnVecSetValues)>("cusparseDnVecSetValues");
    decltype(cusparseSpMV_bufferSize)* column_buffer_size_ =
        find<decltype(cusparseSpMV_bufferSize)>("cusparseSpMV_bufferSize");
    decltype(cusparseSpMV_preprocess)* column_preprocess_ =
        find<decltype(cusparseSpMV_preprocess)>("cusparseSpMV_preprocess");
    decltype(cusparseSpMV)* spmv_ = find<decltype(cusparseSpMV)>("cusparseSpMV");
    cusparseHandle_t handle_ = nullptr;
    std::string version_;
    cusparseSpMatDescr_t matrix_ = nullptr;
    cusparseDnMatDescr_t x_ = nullptr;
    cusparseDnMatDescr_t y_ = nullptr;
    /// X and Y as vectors; null unless they have one column without gaps.
    cusparseDnVecDescr_t x_column_ = nullptr;
    cusparseDnVecDescr_t y_column_ = nullptr;
    /// Values, stored entries, rows, columns of X and type of the current matrix.
    std::tuple<const void*, std::int64_t, std::int64_t, int, cudaDataType> signature_;
    /// The fastest algorithm for this matrix and width, and its prepared data.
    Algorithm algorithm_ = algorithms[1];
    Buffer buffer_;
};

}  // namespace

std::unique_ptr<Rival> make_cusparse(Context& ctx) {
    return std::make_unique<CuSparse>(ctx);
}

}  // namespace quiver::apps::bench
