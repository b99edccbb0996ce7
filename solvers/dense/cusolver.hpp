// SPDX-License-Identifier: BSD-3-Clause
// cuSOLVER, NVIDIA's library of dense factorisations, opened at run time: the build needs neither
// its header nor the library. Private to solvers/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "blockvec/context.hpp"
#include "blockvec/shared_library.hpp"
#include "blockvec/small_matrix.hpp"

namespace quiver {

/// The part of the interface of cuSOLVER 11 and 12 (cusolverDn.h) that is used here.
/// Not in an unnamed namespace: see NcclLibrary.
struct CusolverLibrary {
    /// Loads the file `name`. Throws UnsupportedError.
    explicit CusolverLibrary(const std::string& name) : library(name) {}

    static constexpr int with_vectors = 1;
    static constexpr int lower = 0;
    // cudaDataType_t
    static constexpr int real_double = 1;
    static constexpr int complex_double = 5;

    using Create = int(void** object);
    using Destroy = int(void* object);
    using SetStream = int(void* handle, Stream stream);
    using EigenWorkspace = int(void* handle, void* parameters, int vectors, int part,
                               std::int64_t n, int type, const void* a, std::int64_t lda,
                               int value_type, const void* values, int compute_type,
                               std::size_t* device_bytes, std::size_t* host_bytes);
    using Eigen = int(void* handle, void* parameters, int vectors, int part, std::int64_t n,
                      int type, void* a, std::int64_t lda, int value_type, void* values,
                      int compute_type, void* device_work, std::size_t device_bytes,
                      void* host_work, std::size_t host_bytes, int* info);

    SharedLibrary library;
    Create* create = library.find<Create>("cusolverDnCreate");
    Destroy* destroy = library.find<Destroy>("cusolverDnDestroy");
    SetStream* set_stream = library.find<SetStream>("cusolverDnSetStream");
    Create* create_parameters = library.find<Create>("cusolverDnCreateParams");
    Destroy* destroy_parameters = library.find<Destroy>("cusolverDnDestroyParams");
    EigenWorkspace* eigen_workspace = library.find<EigenWorkspace>("cusolverDnXsyevd_bufferSize");
    Eigen* eigen = library.find<Eigen>("cusolverDnXsyevd");
};

/// The cuSOLVER of this process, and its handle for the Context's GPU and stream; a service of the
/// Context. On the host no library is opened. The loader's path is searched for libcusolver.so.12
/// and libcusolver.so.11, or QUIVER_CUSOLVER names the file (`none`: no cuSOLVER).
class Cusolver {
  public:
    /// Throws the UnsupportedError or DeviceError that prevents the use of a file that
    /// QUIVER_CUSOLVER names.
    explicit Cusolver(Context& ctx);
    Cusolver(const Cusolver&) = delete;
    Cusolver& operator=(const Cusolver&) = delete;
    ~Cusolver();

    /// The version of the library that a Context on a GPU would open; an empty string if there is
    /// none. Loads the library.
    static std::string version();
    bool is_available() const { return parameters_ != nullptr; }
    /// The reason why no library is available, or an empty string.
    const std::string& why_none() const { return why_none_; }
    /// values <- the eigenvalues of the Hermitian matrix A, ascending; row j of A <- the conjugate
    /// of the eigenvector of values[j], of length 1. Returns 0, or cuSOLVER's code of a failure. W
    /// is double or std::complex<double>. Requires is_available(). Throws DeviceError and
    /// MemoryError. O(n^3); device memory for about 3 n^2 entries.
    template <class W>
    int eigen(Context& ctx, SmallMatrix<W>& a, std::vector<double>& values) const;

  private:
    void open(Context& ctx, const std::string& file);
    void close();

    std::optional<CusolverLibrary> library_;
    void* handle_ = nullptr;
    void* parameters_ = nullptr;
    std::string why_none_;
};

}  // namespace quiver
