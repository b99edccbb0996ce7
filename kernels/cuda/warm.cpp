// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/warm.hpp"

#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "blockvec/cache_folder.hpp"
#include "blockvec/error.hpp"
#include "kernels/cuda/compile_queue.hpp"
#include "kernels/cuda/cubin_cache.hpp"
#include "kernels/cuda/kernel_requests.hpp"
#include "kernels/cuda/program_record.hpp"

namespace quiver {

using namespace cuda;

PackResult make_pack(const PackOptions& options,
                     const std::function<void(int done, int all)>& report) {
    const PackContents contents = pack_contents(options.arch, options.wide);
    const KernelList& kernels = contents.kernels;
    const std::string folder = options.folder.empty() ? cache_folder() : options.folder;
    if (folder.empty()) {
        throw InputError("no folder for the pack: name one, or set QUIVER_CACHE");
    }
    PackResult result;
    result.file = folder + "/" + KernelPack::file_name(options.arch);
    result.kernels = static_cast<int>(kernels.size());
    CubinCache::Packs before;
    if (auto pack = KernelPack::open(result.file)) {
        before.push_back(std::move(pack));
    }
    CubinCache cache("", {}, std::move(before));

    std::vector<std::pair<std::string, std::string>> records(kernels.size());
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    int done = 0;
    std::exception_ptr failure;
    const auto work = [&] {
        for (std::size_t i = next++; i < kernels.size(); i = next++) {
            try {
                const CompileRequest request{
                    kernels[i].source, {kernels[i].expression}, options.arch};
                const std::string key = key_of(request);
                records[i] = {record_name(key), to_record(key, cache.get(request))};
                const std::lock_guard lock(mutex);
                if (report) {
                    report(++done, result.kernels);
                }
            } catch (...) {
                const std::lock_guard lock(mutex);
                failure = std::current_exception();
                next = kernels.size();
            }
        }
    };
    std::vector<std::thread> helpers;
    const int threads = options.threads > 0 ? options.threads : usable_cores();
    for (int i = 1; i < threads; ++i) {
        helpers.emplace_back(work);
    }
    work();
    for (std::thread& helper : helpers) {
        helper.join();
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
    records.emplace_back(contents.version, contents.plans);
    KernelPack::write(result.file, records);
    result.compiled = cache.compilations();
    result.bytes = static_cast<std::size_t>(std::filesystem::file_size(result.file));
    return result;
}

std::string device_architecture(int id) {
    int major = 0;
    int minor = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, id) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, id) != cudaSuccess) {
        throw UnsupportedError(
            "no GPU " + std::to_string(id) +
            " on this machine: name the architecture, sm_90 for an H100 or H200");
    }
    return arch_for(major, minor);
}

}  // namespace quiver
