// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "apps/bench/kernel.hpp"
#include "apps/bench/kernels/kernels.hpp"
#include "apps/bench/words.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {

std::span<const Kernel* const> all_kernels() {
    static const std::vector<const Kernel*> table = [] {
        std::vector<const Kernel*> all;
        for (const auto kernels :
             {tsmttsm_kernels(), tsmm_kernels(), tsmm_pair_kernels(), tsmm_gram_kernels(),
              tsmm_in_place_kernels(), axpby_kernels(), dots_kernels(), spmmv_kernels(),
              batched_kernels(), batched_solve_kernels(), mixed_kernels(), mtsm_kernels(),
              orth_kernels(), kmeans_kernels(), shifted_gram_kernels()}) {
            all.insert(all.end(), kernels.begin(), kernels.end());
        }
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
        std::vector<const Kernel*> kernels;
        for (const Kernel* each : all_kernels()) {
            if (each->belongs_to_all()) {
                kernels.push_back(each);
            }
        }
        return kernels;
    }
    std::vector<const Kernel*> kernels;
    for (const std::string& name : split_list("KERNEL", text)) {
        if (name == "batched") {
            for (const auto& part : {batched_kernels(), batched_solve_kernels()}) {
                for (const Kernel* each : part) {
                    if (each->belongs_to_all()) {
                        add_once(kernels, each);
                    }
                }
            }
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
