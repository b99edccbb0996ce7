// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "apps/bench/kernel.hpp"
#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/words.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {

std::span<const Kernel* const> all_kernels() {
    static const std::array products{
        &tsmttsm_kernel(),       &gram_kernel(),        &tsmm_kernel(),
        &tsmm_beta_kernel(),     &tsmm_pair_kernel(),   &tsmm_gram_kernel(),
        &tsmm_in_place_kernel(), &axpby_kernel(),       &dots_kernel(),
        &spmmv_kernel(),         &batched_lu_kernel(),  &batched_cholesky_kernel(),
        &tsmttsm_mixed_kernel(), &tsmm_mixed_kernel(),  &mtsm_kernel(),
        &mtsm_columns_kernel(),  &tsmm_columns_kernel()};
    static const std::vector<const Kernel*> table = [] {
        std::vector<const Kernel*> all(products.begin(), products.end());
        all.insert(all.end(), orth_kernels().begin(), orth_kernels().end());
        return all;
    }();
    return table;
}

const Kernel* find_kernel(std::string_view name) {
    const auto table = all_kernels();
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const Kernel* each) { return name == each->name(); });
    return found == table.end() ? nullptr : *found;
}

std::vector<const Kernel*> parse_kernels(const std::string& text) {
    if (text == "all") {
        return {all_kernels().begin(), all_kernels().end()};
    }
    std::vector<const Kernel*> kernels;
    for (const std::string& name : split_list("KERNEL", text)) {
        if (name == "batched") {
            add_once(kernels, find_kernel("batched-lu"));
            add_once(kernels, find_kernel("batched-cholesky"));
            continue;
        }
        if (name == "orth") {
            for (const Kernel* each : orth_kernels()) {
                add_once(kernels, each);
            }
            continue;
        }
        const Kernel* const kernel = find_kernel(name);
        if (kernel == nullptr) {
            std::string known;
            for (const Kernel* each : all_kernels()) {
                known += fmt::format("{}, ", each->name());
            }
            throw InputError(
                fmt::format("there is no kernel {}: {}batched, orth or all", name, known));
        }
        add_once(kernels, kernel);
    }
    return kernels;
}

}  // namespace quiver::apps::bench
