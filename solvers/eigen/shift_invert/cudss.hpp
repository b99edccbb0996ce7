// SPDX-License-Identifier: BSD-3-Clause
// cuDSS, NVIDIA's library of sparse factorisations, opened at run time: the build needs neither its
// header nor the library. Private to solvers/eigen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "blockvec/context.hpp"
#include "blockvec/shared_library.hpp"

namespace quiver {

/// The part of the interface of cuDSS 1 (cudss.h, cudss_data_types.h) that is used here. Version 0
/// is refused, because its releases number the enumerations differently and take other arguments.
/// Not in an unnamed namespace: see NcclLibrary.
struct CudssLibrary {
    /// Loads the file `name`. Throws UnsupportedError for a library that is missing or whose
    /// version is not 1.
    explicit CudssLibrary(std::string name);

    // cudssStatus_t
    static constexpr int success = 0;
    static constexpr int allocation_failed = 2;
    // cudssConfigParam_t
    static constexpr int config_matching = 3;
    static constexpr int config_refinement_steps = 5;
    static constexpr int config_pivot_type = 7;
    static constexpr int config_pivot_epsilon = 9;
    static constexpr int config_host_threads = 14;
    static constexpr int matching_none = 0;
    static constexpr int pivot_bunch_kaufman = 6;
    // cudssDataParam_t
    static constexpr int data_info = 0;
    static constexpr int data_entries = 1;
    static constexpr int data_inertia = 3;
    static constexpr int data_memory_estimates = 13;
    // cudssPhase_t
    static constexpr int phase_analysis = 3;
    static constexpr int phase_factorisation = 4;
    static constexpr int phase_solve = 1008;
    // cudssMatrixType_t, cudssMatrixViewType_t, cudssIndexBase_t, cudssLayout_t
    static constexpr int symmetric = 1;
    static constexpr int hermitian = 2;
    static constexpr int upper_view = 2;
    static constexpr int base_zero = 0;
    static constexpr int column_major = 0;
    // cudaDataType_t
    static constexpr int real_double = 1;
    static constexpr int complex_double = 5;
    static constexpr int int_32 = 10;

    /// cudssDeviceMemHandler_t; the functions return 0 on success.
    struct MemoryHandler {
        void* owner;
        int (*allocate)(void* owner, void** pointer, std::size_t bytes, Stream stream);
        int (*deallocate)(void* owner, void* pointer, std::size_t bytes, Stream stream);
        char name[64];
    };

    using Create = int(void** object);
    using Destroy = int(void* object);
    using SetStream = int(void* handle, Stream stream);
    using SetMemoryHandler = int(void* handle, const MemoryHandler* handler);
    using SetThreadingLayer = int(void* handle, const char* file);
    using ConfigSet = int(void* config, int parameter, const void* value, std::size_t bytes);
    using DataCreate = int(void* handle, void** data);
    using DataDestroy = int(void* handle, void* data);
    using DataGet = int(void* handle, void* data, int parameter, void* value, std::size_t bytes,
                        std::size_t* written);
    using MatrixCreateCsr = int(void** matrix, std::int64_t rows, std::int64_t cols,
                                std::int64_t entries, const void* row_start, const void* row_end,
                                const void* column, const void* value, int offset_type,
                                int index_type, int value_type, int matrix_type, int view,
                                int base);
    using MatrixCreateDense = int(void** matrix, std::int64_t rows, std::int64_t cols,
                                  std::int64_t ld, const void* value, int value_type, int layout);
    using Execute = int(void* handle, int phase, void* config, void* data, void* matrix,
                        void* solution, void* right);

    std::string file;
    SharedLibrary library{file};
    /// "1.0.0". Checked before the functions below are looked up, which another version may lack.
    std::string version;
    Create* create = library.find<Create>("cudssCreate");
    Destroy* destroy = library.find<Destroy>("cudssDestroy");
    SetStream* set_stream = library.find<SetStream>("cudssSetStream");
    SetMemoryHandler* set_memory_handler =
        library.find<SetMemoryHandler>("cudssSetDeviceMemHandler");
    SetThreadingLayer* set_threading_layer =
        library.find<SetThreadingLayer>("cudssSetThreadingLayer");
    Create* config_create = library.find<Create>("cudssConfigCreate");
    Destroy* config_destroy = library.find<Destroy>("cudssConfigDestroy");
    ConfigSet* config_set = library.find<ConfigSet>("cudssConfigSet");
    DataCreate* data_create = library.find<DataCreate>("cudssDataCreate");
    DataDestroy* data_destroy = library.find<DataDestroy>("cudssDataDestroy");
    DataGet* data_get = library.find<DataGet>("cudssDataGet");
    MatrixCreateCsr* matrix_create_csr = library.find<MatrixCreateCsr>("cudssMatrixCreateCsr");
    MatrixCreateDense* matrix_create_dense = library.find<MatrixCreateDense>("cudssMatrixCreateDn");
    Destroy* matrix_destroy = library.find<Destroy>("cudssMatrixDestroy");
    Execute* execute = library.find<Execute>("cudssExecute");
};

/// The cuDSS library of this process, and its handle for the Context's GPU and stream; a service of
/// the Context. The loader's path is searched for libcudss.so.1, or QUIVER_CUDSS names the file
/// (`none`: no cuDSS). The folders of Python packages (nvidia/cu13/lib in site-packages) are not
/// searched.
class Cudss {
  public:
    /// Throws, if QUIVER_CUDSS names a file, the UnsupportedError or DeviceError that prevents its
    /// use.
    explicit Cudss(Context& ctx);
    Cudss(const Cudss&) = delete;
    Cudss& operator=(const Cudss&) = delete;
    ~Cudss();

    bool is_available() const { return handle_ != nullptr; }
    /// The reason why no library is available, or an empty string.
    const std::string& why_none() const { return why_none_; }
    /// Requires is_available().
    const CudssLibrary& library() const { return *library_; }
    void* handle() const { return handle_; }
    /// Unless `status` is success, throws DeviceError "what: ...", or MemoryError with the size of
    /// the allocation that failed.
    void check(int status, const char* what) const;
    /// The device memory that the library holds.
    std::size_t held_bytes() const { return held_bytes_; }

  private:
    void open(Context& ctx);
    void use_host_threads();
    static int allocate(void* owner, void** pointer, std::size_t bytes, Stream stream);
    static int deallocate(void* owner, void* pointer, std::size_t bytes, Stream stream);

    std::optional<CudssLibrary> library_;
    void* handle_ = nullptr;
    std::string why_none_;
    std::size_t held_bytes_ = 0;
    std::size_t refused_bytes_ = 0;
};

/// True if rank 0 has a GPU and a cuDSS that it can use. Throws the errors of Cudss on all ranks.
/// Collective.
bool cudss_is_available(Context& ctx);

}  // namespace quiver
