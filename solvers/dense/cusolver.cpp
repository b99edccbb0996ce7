// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/dense/cusolver.hpp"

#include <complex>
#include <utility>

#include "blockvec/device.hpp"
#include "blockvec/error.hpp"
#include "blockvec/scalar.hpp"

namespace quiver {
namespace {

void require_cusolver(int status, const char* what) {
    if (status != 0) {
        throw DeviceError(std::string(what) + ": status " + std::to_string(status) +
                          " (QUIVER_CUSOLVER=none computes on the host)");
    }
}

std::vector<std::string> files_to_try() {
    return library_files("QUIVER_CUSOLVER", {"libcusolver.so.12", "libcusolver.so.11"});
}

}  // namespace

Cusolver::Cusolver(Context& ctx) {
    if (ctx.place() != Place::device) {
        why_none_ = "the vectors are in host memory";
        return;
    }
    const std::vector<std::string> files = files_to_try();
    if (files.empty()) {
        why_none_ = "QUIVER_CUSOLVER is none";
    }
    for (const std::string& file : files) {
        try {
            open(ctx, file);
            return;
        } catch (const Error& error) {
            if (files.size() == 1) {
                throw;
            }
            why_none_ = error.what();  // LAPACK takes its place
        }
    }
}

void Cusolver::open(Context& ctx, const std::string& file) {
    library_.emplace(file);
    try {
        require_cusolver(library_->create(&handle_), "cusolverDnCreate");
        require_cusolver(library_->set_stream(handle_, ctx.stream()), "cusolverDnSetStream");
        require_cusolver(library_->create_parameters(&parameters_), "cusolverDnCreateParams");
    } catch (const Error&) {
        close();
        throw;
    }
    why_none_.clear();
}

void Cusolver::close() {
    if (parameters_ != nullptr) {
        static_cast<void>(library_->destroy_parameters(std::exchange(parameters_, nullptr)));
    }
    if (handle_ != nullptr) {
        static_cast<void>(library_->destroy(std::exchange(handle_, nullptr)));
    }
}

Cusolver::~Cusolver() {
    close();
}

template <class W>
int Cusolver::eigen(Context& ctx, SmallMatrix<W>& a, std::vector<double>& values) const {
    constexpr int type =
        is_complex_v<W> ? CusolverLibrary::complex_double : CusolverLibrary::real_double;
    const std::int64_t n = a.rows();
    const auto order = static_cast<std::size_t>(n);
    const std::size_t matrix_bytes = order * order * sizeof(W);
    values.resize(order);
    const char* const what = "a dense eigenproblem (QUIVER_CUSOLVER=none takes host memory)";
    const Buffer matrix = ctx.allocate(MemoryKind::device, matrix_bytes, what);
    const Buffer result = ctx.allocate(MemoryKind::device, (order + 1) * sizeof(double), what);
    auto* const info = reinterpret_cast<int*>(result.as<double>() + order);
    std::size_t device_bytes = 0;
    std::size_t host_bytes = 0;
    require_cusolver(library_->eigen_workspace(handle_, parameters_, CusolverLibrary::with_vectors,
                                               CusolverLibrary::lower, n, type, matrix.as<void>(),
                                               n, CusolverLibrary::real_double, result.as<void>(),
                                               type, &device_bytes, &host_bytes),
                     "cusolverDnXsyevd_bufferSize");
    const Buffer work = ctx.allocate(MemoryKind::device, device_bytes, what);
    std::vector<char> host_work(host_bytes);
    device::copy(matrix.as<void>(), a.data(), matrix_bytes, ctx.stream());
    require_cusolver(
        library_->eigen(handle_, parameters_, CusolverLibrary::with_vectors, CusolverLibrary::lower,
                        n, type, matrix.as<void>(), n, CusolverLibrary::real_double,
                        result.as<void>(), type, work.as<void>(), device_bytes, host_work.data(),
                        host_bytes, info),
        "cusolverDnXsyevd");
    int code = 0;
    device::copy(a.data(), matrix.as<void>(), matrix_bytes, ctx.stream());
    device::copy(values.data(), result.as<void>(), order * sizeof(double), ctx.stream());
    device::copy(&code, info, sizeof(code), ctx.stream());
    ctx.synchronize();
    return code;
}

std::string Cusolver::version() {
    for (const std::string& file : files_to_try()) {
        try {
            return SharedLibrary(file).version("cusolverGetProperty");
        } catch (const UnsupportedError&) {  // another file may exist
        }
    }
    return "";
}

template int Cusolver::eigen(Context&, SmallMatrix<double>&, std::vector<double>&) const;
template int Cusolver::eigen(Context&, SmallMatrix<std::complex<double>>&,
                             std::vector<double>&) const;

}  // namespace quiver
