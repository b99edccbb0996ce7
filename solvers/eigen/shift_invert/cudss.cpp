// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/cudss.hpp"

#include <cstdlib>
#include <exception>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "solvers/eigen/shift_invert.hpp"

namespace quiver {
namespace {

/// The file in QUIVER_CUDSS, or an empty string.
std::string chosen_file() {
    const char* const chosen = std::getenv("QUIVER_CUDSS");
    return chosen == nullptr ? "" : chosen;
}

std::string file_to_load() {
    const std::string chosen = chosen_file();
    return chosen.empty() ? "libcudss.so.1" : chosen;
}

std::string status_name(int status) {
    constexpr const char* names[] = {"success",        "not initialised",  "allocation failed",
                                     "invalid value",  "not supported",    "execution failed",
                                     "internal error", "refinement failed"};
    const bool is_known = status >= 0 && static_cast<std::size_t>(status) < std::size(names);
    return is_known ? names[status] : "status " + std::to_string(status);
}

/// The version of the library. Throws UnsupportedError unless it is 1.x.
std::string version_of(const SharedLibrary& library, const std::string& file) {
    std::string version = library.version("cudssGetProperty");
    if (version.rfind("1.", 0) != 0) {
        throw UnsupportedError(file + " is cuDSS " + version +
                               ", and version 1 is needed; install nvidia-cudss-cu13 by pip, or "
                               "set QUIVER_CUDSS=none");
    }
    return version;
}

}  // namespace

CudssLibrary::CudssLibrary(std::string name)
    : file(std::move(name)), version(version_of(library, file)) {}

Cudss::Cudss(Context& ctx) {
    const std::string chosen = chosen_file();
    if (chosen == "none") {
        why_none_ = "QUIVER_CUDSS is none";
        return;
    }
    try {
        open(ctx);
    } catch (const Error& error) {
        if (!chosen.empty()) {
            throw;
        }
        why_none_ = error.what();
    }
}

void Cudss::open(Context& ctx) {
    library_.emplace(file_to_load());
    void* handle = nullptr;
    const int status = library_->create(&handle);
    try {
        check(status, "cudssCreate");
        check(library_->set_stream(handle, ctx.stream()), "cudssSetStream");
        // Quiver's memory pool keeps freed memory, which the library could not use otherwise.
        const CudssLibrary::MemoryHandler handler{this, &allocate, &deallocate, "quiver"};
        check(library_->set_memory_handler(handle, &handler), "cudssSetDeviceMemHandler");
    } catch (const Error&) {
        if (handle != nullptr) {
            static_cast<void>(library_->destroy(handle));
        }
        throw;
    }
    handle_ = handle;
    use_host_threads();
}

/// Lets the library order the rows on several threads, if the file of its OpenMP layer is in the
/// same folder. Without this layer one thread orders them.
void Cudss::use_host_threads() {
    const std::string& file = library_->file;
    const std::string layer = file.substr(0, file.rfind('/') + 1) + "libcudss_mtlayer_gomp.so.1";
    try {
        const SharedLibrary found(layer);
        static_cast<void>(library_->set_threading_layer(handle_, layer.c_str()));
    } catch (const UnsupportedError&) {  // one thread
    }
}

Cudss::~Cudss() {
    if (handle_ != nullptr) {
        static_cast<void>(library_->destroy(handle_));
    }
}

int Cudss::allocate(void* owner, void** pointer, std::size_t bytes, Stream stream) {
    auto& self = *static_cast<Cudss*>(owner);
    try {
        *pointer = bytes == 0 ? nullptr : device::allocate(bytes, stream);
    } catch (const std::exception&) {  // no exception may pass through the library
        *pointer = nullptr;
    }
    if (*pointer == nullptr && bytes > 0) {
        self.refused_bytes_ = bytes;
        return 1;
    }
    self.held_bytes_ += bytes;
    return 0;
}

int Cudss::deallocate(void* owner, void* pointer, std::size_t bytes, Stream stream) {
    if (pointer != nullptr) {
        static_cast<Cudss*>(owner)->held_bytes_ -= bytes;
        device::deallocate(pointer, stream);
    }
    return 0;
}

void Cudss::check(int status, const char* what) const {
    if (status == CudssLibrary::success) {
        return;
    }
    if (status == CudssLibrary::allocation_failed) {
        const std::string missing =
            refused_bytes_ == 0 ? "host memory"
                                : number_text(1e-6 * static_cast<double>(refused_bytes_), 4) +
                                      " MB of device memory for an array";
        throw MemoryError(std::string(what) + ": cuDSS could not allocate " + missing +
                          "; set QUIVER_CUDSS=none to factorise in host memory, or take a method "
                          "that iterates");
    }
    throw DeviceError(std::string(what) + ": " + status_name(status) +
                      " (set CUDSS_LOG_LEVEL=2 for details)");
}

bool cudss_is_available(Context& ctx) {
    bool available = false;
    ctx.comm().agree([&] {
        if (ctx.comm().rank() == 0 && ctx.place() == Place::device) {
            available = ctx.service<Cudss>().is_available();
        }
    });
    ctx.comm().broadcast(&available, sizeof(available), 0);
    return available;
}

std::string cudss_version() {
    try {
        return chosen_file() == "none" ? "" : CudssLibrary(file_to_load()).version;
    } catch (const UnsupportedError&) {
        return "";
    }
}

}  // namespace quiver
