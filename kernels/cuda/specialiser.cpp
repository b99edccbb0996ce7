// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/specialiser.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "blockvec/cache_folder.hpp"
#include "blockvec/error.hpp"
#include "kernels/cuda/program_record.hpp"

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

Specialiser::Specialiser(Context& ctx)
    : memory_(ctx.memory()),
      overhead_(OverheadCounts::of(ctx)),
      arch_(arch_of(ctx.device().id)),
      cache_(cache_folder(), std::chrono::minutes(1), KernelPack::installed(arch_)),
      queue_(cache_, usable_cores()) {
    // Names of kernels contain the version of NVRTC, whose library takes 10 to 40 ms to open.
    queue_.run([arch = arch_] { static_cast<void>(key_of({"", {""}, arch})); });
}

Specialiser::~Specialiser() {
    static_cast<void>(cudaStreamSynchronize(memory_->stream()));
    for (cudaLibrary_t library : libraries_) {
        static_cast<void>(cudaLibraryUnload(library));
    }
}

Kernel& Specialiser::get(const Context& ctx, const char* source, const std::string& expression) {
    if (const auto found = kernels_.find(expression); found != kernels_.end()) {
        return found->second;
    }
    const OverheadCounts::Pause pause(overhead_, Overhead::kernel_load, 0, true);
    const auto begin = std::chrono::steady_clock::now();
    const CompileRequest request{source, {expression}, arch_};
    const bool ready = queue_.ready(request);
    load(queue_.get(request), {expression});
    if (!ready) {
        const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
        ctx.emit(KernelWaitEvent{expression, waited.count()});
    }
    return kernels_.at(expression);
}

bool Specialiser::ready(const char* source, const std::string& expression) {
    return kernels_.contains(expression) || queue_.ready({source, {expression}, arch_});
}

void Specialiser::request(const char* source, const std::string& expression, bool can_wait) {
    if (!kernels_.contains(expression)) {
        queue_.request({source, {expression}, arch_}, can_wait);
    }
}

void Specialiser::request_all(std::function<void(const Use&)> list) {
    // Everything the thread uses outlives it, because the queue waits for its threads.
    queue_.run([this, list = std::move(list)] {
        list([this](const KernelInstance& kernel) {
            queue_.request({kernel.source, {kernel.expression}, arch_},
                           kernel.can_wait && !packs().empty());
            return !queue_.stopping();
        });
    });
}

void Specialiser::load(const CompiledProgram& program,
                       const std::vector<std::string>& expressions) {
    const CurrentDevice current(memory_->device_id());
    libraries_.reserve(libraries_.size() + 1);
    cudaLibrary_t library = nullptr;
    device::check(cudaLibraryLoadData(&library, program.image.data(), nullptr, nullptr, 0, nullptr,
                                      nullptr, 0),
                  ("loading " + expressions.front() + " for " + arch_).c_str());
    libraries_.push_back(library);
    for (std::size_t i = 0; i < expressions.size(); ++i) {
        Kernel kernel;
        kernel.name = expressions[i];
        device::check(
            cudaLibraryGetKernel(&kernel.handle, library, program.lowered_names[i].c_str()),
            ("looking up " + expressions[i]).c_str());
        kernels_.emplace(expressions[i], std::move(kernel));
    }
}

void Specialiser::prepare(const char* source, const std::vector<std::string>& expressions,
                          int threads) {
    constexpr std::size_t together = 4;
    std::vector<CompileRequest> requests;
    for (const std::string& expression : expressions) {
        if (expression.empty() || kernels_.contains(expression)) {
            continue;
        }
        if (requests.empty() || requests.back().expressions.size() == together) {
            requests.push_back({source, {}, arch_});
        }
        requests.back().expressions.push_back(expression);
    }
    std::vector<std::optional<CompiledProgram>> programs(requests.size());
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < requests.size(); i = next++) {
            try {
                programs[i] = compile(requests[i]);
            } catch (const Error&) {
                // One invalid instance fails the whole program; get() then compiles the others one
                // by one.
            }
        }
    };
    std::vector<std::thread> helpers;
    for (int i = 1; i < threads; ++i) {
        helpers.emplace_back(work);
    }
    work();
    for (std::thread& helper : helpers) {
        helper.join();
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
        if (programs[i]) {
            load(*programs[i], requests[i].expressions);
        }
    }
}

}  // namespace quiver::cuda
