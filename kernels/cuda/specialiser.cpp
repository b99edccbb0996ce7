// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/specialiser.hpp"

namespace quiver::cuda {
namespace {

std::string arch_of(int device) {
    int major = 0;
    int minor = 0;
    device::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                  "cudaDeviceGetAttribute");
    device::check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
                  "cudaDeviceGetAttribute");
    return arch_for(major, minor);
}

}  // namespace

Specialiser::Specialiser(Context& ctx) : memory_(ctx.memory()), arch_(arch_of(ctx.device().id)) {}

Specialiser::~Specialiser() {
    static_cast<void>(cudaStreamSynchronize(memory_->stream()));
    for (cudaLibrary_t library : libraries_) {
        static_cast<void>(cudaLibraryUnload(library));
    }
}

Kernel& Specialiser::get(const char* source, const std::string& expression) {
    if (const auto found = kernels_.find(expression); found != kernels_.end()) {
        return found->second;
    }
    const CompiledProgram program = cache_.get({source, {expression}, arch_});
    const CurrentDevice current(memory_->device_id());
    libraries_.reserve(libraries_.size() + 1);
    cudaLibrary_t library = nullptr;
    device::check(cudaLibraryLoadData(&library, program.image.data(), nullptr, nullptr, 0, nullptr,
                                      nullptr, 0),
                  ("loading " + expression + " for " + arch_).c_str());
    libraries_.push_back(library);
    Kernel kernel;
    kernel.name = expression;
    device::check(
        cudaLibraryGetKernel(&kernel.handle, library, program.lowered_names.front().c_str()),
        ("looking up " + expression).c_str());
    return kernels_.emplace(expression, std::move(kernel)).first->second;
}

}  // namespace quiver::cuda
