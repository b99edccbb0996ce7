// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/triangular_factors.hpp"

#include <complex>
#include <map>
#include <string>
#include <utility>

// csrilu02 is deprecated in cuSPARSE 12.6 (CUDA 13), but has no successor.
#define DISABLE_CUSPARSE_DEPRECATED
#include <cusparse.h>

#include "blockvec/device.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"
#include "blockvec/shared_library.hpp"

namespace quiver::cuda {
namespace {

constexpr cusparseOperation_t no_transpose = CUSPARSE_OPERATION_NON_TRANSPOSE;
constexpr cusparseSpSMAlg_t algorithm = CUSPARSE_SPSM_ALG_DEFAULT;

template <class T>
constexpr cudaDataType data_type = std::is_same_v<T, float>                 ? CUDA_R_32F
                                   : std::is_same_v<T, double>              ? CUDA_R_64F
                                   : std::is_same_v<T, std::complex<float>> ? CUDA_C_32F
                                                                            : CUDA_C_64F;
template <class T>
constexpr char routine_letter = std::is_same_v<T, float>                 ? 'S'
                                : std::is_same_v<T, double>              ? 'D'
                                : std::is_same_v<T, std::complex<float>> ? 'C'
                                                                         : 'Z';

/// The library and its handle for a Context's stream.
class CuSparse {
  public:
    explicit CuSparse(Context& ctx) {
        check(create(&handle), "cusparseCreate");
        check(set_stream(handle, ctx.stream()), "cusparseSetStream");
    }
    CuSparse(const CuSparse&) = delete;
    CuSparse& operator=(const CuSparse&) = delete;
    ~CuSparse() { static_cast<void>(destroy(handle)); }

    void check(cusparseStatus_t status, const char* what) const {
        if (status != CUSPARSE_STATUS_SUCCESS) {
            throw DeviceError(std::string(what) + ": " + error_name(status));
        }
    }
    template <class F>
    F* find(const char* name) const {
        return library.find<F>(name);
    }
    /// The function cusparse?csrilu02NAME, with T replaced by CUDA's scalar type of the same
    /// layout.
    template <class T, class F>
    F* find_lu(const char* name) const {
        return find<F>((std::string("cusparse") + routine_letter<T> + "csrilu02" + name).c_str());
    }

    SharedLibrary library{"libcusparse.so." + std::to_string(CUSPARSE_VER_MAJOR)};
    decltype(cusparseCreate)* create = find<decltype(cusparseCreate)>("cusparseCreate");
    decltype(cusparseDestroy)* destroy = find<decltype(cusparseDestroy)>("cusparseDestroy");
    decltype(cusparseSetStream)* set_stream =
        find<decltype(cusparseSetStream)>("cusparseSetStream");
    decltype(cusparseGetErrorName)* error_name =
        find<decltype(cusparseGetErrorName)>("cusparseGetErrorName");
    decltype(cusparseCreateCsr)* create_csr =
        find<decltype(cusparseCreateCsr)>("cusparseCreateCsr");
    decltype(cusparseSpMatSetAttribute)* set_attribute =
        find<decltype(cusparseSpMatSetAttribute)>("cusparseSpMatSetAttribute");
    decltype(cusparseDestroySpMat)* destroy_sparse =
        find<decltype(cusparseDestroySpMat)>("cusparseDestroySpMat");
    decltype(cusparseCreateDnMat)* create_dense =
        find<decltype(cusparseCreateDnMat)>("cusparseCreateDnMat");
    decltype(cusparseDestroyDnMat)* destroy_dense =
        find<decltype(cusparseDestroyDnMat)>("cusparseDestroyDnMat");
    decltype(cusparseSpSM_createDescr)* create_solve =
        find<decltype(cusparseSpSM_createDescr)>("cusparseSpSM_createDescr");
    decltype(cusparseSpSM_destroyDescr)* destroy_solve =
        find<decltype(cusparseSpSM_destroyDescr)>("cusparseSpSM_destroyDescr");
    decltype(cusparseSpSM_bufferSize)* solve_buffer =
        find<decltype(cusparseSpSM_bufferSize)>("cusparseSpSM_bufferSize");
    decltype(cusparseSpSM_analysis)* solve_analysis =
        find<decltype(cusparseSpSM_analysis)>("cusparseSpSM_analysis");
    decltype(cusparseSpSM_solve)* solve = find<decltype(cusparseSpSM_solve)>("cusparseSpSM_solve");
    decltype(cusparseCreateMatDescr)* create_description =
        find<decltype(cusparseCreateMatDescr)>("cusparseCreateMatDescr");
    decltype(cusparseDestroyMatDescr)* destroy_description =
        find<decltype(cusparseDestroyMatDescr)>("cusparseDestroyMatDescr");
    decltype(cusparseCreateCsrilu02Info)* create_lu =
        find<decltype(cusparseCreateCsrilu02Info)>("cusparseCreateCsrilu02Info");
    decltype(cusparseDestroyCsrilu02Info)* destroy_lu =
        find<decltype(cusparseDestroyCsrilu02Info)>("cusparseDestroyCsrilu02Info");
    cusparseHandle_t handle = nullptr;
};

/// Destroys the handle at the end of the scope.
template <class Handle, class Destroy>
class Owned {
  public:
    explicit Owned(Destroy* destroy) : destroy_(destroy) {}
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() {
        if (value != nullptr) {
            static_cast<void>(destroy_(value));
        }
    }
    Handle value = nullptr;

  private:
    Destroy* destroy_;
};

template <class V>
Buffer upload(Context& ctx, const std::vector<V>& from, const char* what) {
    Buffer result = ctx.allocate(MemoryKind::device, from.size() * sizeof(V), what);
    if (!from.empty()) {
        device::copy(result.as<void>(), from.data(), from.size() * sizeof(V), ctx.stream());
        ctx.synchronize();
    }
    return result;
}

/// A descriptor of a dense block for one call.
template <class T>
class Dense {
  public:
    Dense(const CuSparse& library, BlockView<const T> block) : owned_(library.destroy_dense) {
        library.check(
            library.create_dense(&owned_.value, block.rows, block.cols, block.ld,
                                 const_cast<T*>(block.data), data_type<T>, CUSPARSE_ORDER_ROW),
            "cusparseCreateDnMat");
    }
    cusparseDnMatDescr_t get() const { return owned_.value; }

  private:
    Owned<cusparseDnMatDescr_t, cusparseStatus_t(cusparseConstDnMatDescr_t)> owned_;
};

/// The state of SpSM for blocks of one width.
struct Plan {
    explicit Plan(const CuSparse& library) : solve(library.destroy_solve) {}

    Owned<cusparseSpSMDescr_t, decltype(cusparseSpSM_destroyDescr)> solve;
    Buffer buffer;
};

}  // namespace

template <class T>
struct TriangularFactors<T>::Data {
    Data(CuSparse& from, std::int64_t rows_, std::int64_t nonzeros_)
        : library(from), rows(rows_), nonzeros(nonzeros_) {}

    /// The solve with one triangle, analysed for blocks like x and y.
    Plan& plan(Context& ctx, int triangle, const Dense<T>& x, const Dense<T>& y, int width) {
        std::unique_ptr<Plan>& slot = plans[triangle][width];
        if (slot) {
            return *slot;
        }
        auto made = std::make_unique<Plan>(library);
        library.check(library.create_solve(&made->solve.value), "cusparseSpSM_createDescr");
        alignas(16) const T one(1);  // the alignment of cuDoubleComplex
        std::size_t bytes = 0;
        library.check(library.solve_buffer(library.handle, no_transpose, no_transpose, &one,
                                           triangles[triangle]->value, x.get(), y.get(),
                                           data_type<T>, algorithm, made->solve.value, &bytes),
                      "cusparseSpSM_bufferSize");
        made->buffer = ctx.allocate(MemoryKind::device, bytes, "triangular solves");
        library.check(
            library.solve_analysis(library.handle, no_transpose, no_transpose, &one,
                                   triangles[triangle]->value, x.get(), y.get(), data_type<T>,
                                   algorithm, made->solve.value, made->buffer.template as<void>()),
            "cusparseSpSM_analysis");
        slot = std::move(made);
        return *slot;
    }

    void solve(Context& ctx, int triangle, BlockView<const T> from, BlockView<T> to) {
        const Dense<T> x(library, from);
        const Dense<T> y(library, to);
        Plan& ready = plan(ctx, triangle, x, y, from.cols);
        alignas(16) const T one(1);  // the alignment of cuDoubleComplex
        library.check(library.solve(library.handle, no_transpose, no_transpose, &one,
                                    triangles[triangle]->value, x.get(), y.get(), data_type<T>,
                                    algorithm, ready.solve.value),
                      "cusparseSpSM_solve");
    }

    void factorise(Context& ctx) {
        using Size = cusparseStatus_t(cusparseHandle_t, int, int, cusparseMatDescr_t, T*,
                                      const int*, const int*, csrilu02Info_t, int*);
        using Analysis =
            cusparseStatus_t(cusparseHandle_t, int, int, cusparseMatDescr_t, const T*, const int*,
                             const int*, csrilu02Info_t, cusparseSolvePolicy_t, void*);
        using Factor =
            cusparseStatus_t(cusparseHandle_t, int, int, cusparseMatDescr_t, T*, const int*,
                             const int*, csrilu02Info_t, cusparseSolvePolicy_t, void*);
        Owned<cusparseMatDescr_t, decltype(cusparseDestroyMatDescr)> general(
            library.destroy_description);
        library.check(library.create_description(&general.value), "cusparseCreateMatDescr");
        Owned<csrilu02Info_t, decltype(cusparseDestroyCsrilu02Info)> info(library.destroy_lu);
        library.check(library.create_lu(&info.value), "cusparseCreateCsrilu02Info");
        const int n = static_cast<int>(rows);
        const int nnz = static_cast<int>(nonzeros);
        T* const entries = value.as<T>();
        const int* const starts = row_start.as<int>();
        const int* const columns = column.as<int>();
        int bytes = 0;
        library.check(library.template find_lu<T, Size>("_bufferSize")(
                          library.handle, n, nnz, general.value, entries, starts, columns,
                          info.value, &bytes),
                      "cusparseXcsrilu02_bufferSize");
        const Scratch buffer = ctx.scratch(MemoryKind::device, static_cast<std::size_t>(bytes));
        library.check(library.template find_lu<T, Analysis>("_analysis")(
                          library.handle, n, nnz, general.value, entries, starts, columns,
                          info.value, CUSPARSE_SOLVE_POLICY_USE_LEVEL, buffer.as<void>()),
                      "cusparseXcsrilu02_analysis");
        library.check(library.template find_lu<T, Factor>("")(
                          library.handle, n, nnz, general.value, entries, starts, columns,
                          info.value, CUSPARSE_SOLVE_POLICY_USE_LEVEL, buffer.as<void>()),
                      "cusparseXcsrilu02");
        ctx.synchronize();
    }

    CuSparse& library;
    std::int64_t rows;
    std::int64_t nonzeros;
    Buffer row_start;
    Buffer column;
    Buffer value;
    /// L and U, and their plans by width.
    std::unique_ptr<Owned<cusparseSpMatDescr_t, cusparseStatus_t(cusparseConstSpMatDescr_t)>>
        triangles[2];
    std::map<int, std::unique_ptr<Plan>> plans[2];
};

template <class T>
TriangularFactors<T>::TriangularFactors(Context& ctx, const std::vector<int>& row_start,
                                        const std::vector<int>& column, const std::vector<T>& value,
                                        bool factorise)
    : data_(std::make_unique<Data>(ctx.service<CuSparse>(),
                                   static_cast<std::int64_t>(row_start.size()) - 1,
                                   static_cast<std::int64_t>(column.size()))) {
    Data& data = *data_;
    data.row_start = upload(ctx, row_start, "incomplete LU");
    data.column = upload(ctx, column, "incomplete LU");
    data.value = upload(ctx, value, "incomplete LU");
    if (data.rows == 0) {
        return;
    }
    if (factorise) {
        data.factorise(ctx);
    }
    for (const bool upper : {false, true}) {
        auto& triangle = data.triangles[upper ? 1 : 0];
        triangle = std::make_unique<
            Owned<cusparseSpMatDescr_t, cusparseStatus_t(cusparseConstSpMatDescr_t)>>(
            data.library.destroy_sparse);
        data.library.check(data.library.create_csr(
                               &triangle->value, data.rows, data.rows, data.nonzeros,
                               data.row_start.template as<void>(), data.column.template as<void>(),
                               data.value.template as<void>(), CUSPARSE_INDEX_32I,
                               CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, data_type<T>),
                           "cusparseCreateCsr");
        cusparseFillMode_t fill = upper ? CUSPARSE_FILL_MODE_UPPER : CUSPARSE_FILL_MODE_LOWER;
        cusparseDiagType_t diagonal = upper ? CUSPARSE_DIAG_TYPE_NON_UNIT : CUSPARSE_DIAG_TYPE_UNIT;
        data.library.check(data.library.set_attribute(triangle->value, CUSPARSE_SPMAT_FILL_MODE,
                                                      &fill, sizeof(fill)),
                           "cusparseSpMatSetAttribute");
        data.library.check(data.library.set_attribute(triangle->value, CUSPARSE_SPMAT_DIAG_TYPE,
                                                      &diagonal, sizeof(diagonal)),
                           "cusparseSpMatSetAttribute");
    }
}

template <class T>
TriangularFactors<T>::~TriangularFactors() = default;

template <class T>
void TriangularFactors<T>::download(Context& ctx, std::vector<T>& value) const {
    if (!value.empty()) {
        device::copy(value.data(), data_->value.template as<void>(), value.size() * sizeof(T),
                     ctx.stream());
        ctx.synchronize();
    }
}

template <class T>
void TriangularFactors<T>::solve(Context& ctx, BlockView<const T> x, BlockView<T> y) {
    if (x.empty()) {
        return;
    }
    // A plan is valid for blocks of one stride only.
    const std::size_t elements =
        static_cast<std::size_t>(x.rows) * static_cast<std::size_t>(x.cols);
    const Scratch scratch = ctx.scratch(MemoryKind::device, 2 * elements * sizeof(T));
    const BlockView<T> one(scratch.as<T>(), x.rows, x.cols, x.cols, x.place);
    const BlockView<T> other(scratch.as<T>() + elements, x.rows, x.cols, x.cols, x.place);
    const auto copy = [&](BlockView<const T> from, BlockView<T> to) {
        device::copy_2d(to.data, static_cast<std::size_t>(to.ld) * sizeof(T), from.data,
                        static_cast<std::size_t>(from.ld) * sizeof(T),
                        static_cast<std::size_t>(x.cols) * sizeof(T),
                        static_cast<std::size_t>(x.rows), ctx.stream());
    };
    copy(x, one);
    data_->solve(ctx, 0, one, other);
    data_->solve(ctx, 1, other, one);
    copy(one, y);
}

#define QUIVER_INSTANTIATE(T) template class TriangularFactors<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::cuda
