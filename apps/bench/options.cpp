// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/options.hpp"

#include <cmath>

#include <fmt/format.h>

#include "apps/report.hpp"
#include "blockvec/error.hpp"
#include "kernels/output_file.hpp"

namespace quiver::apps::bench {

void check_common(const Comm& comm, const CommonOptions& options) {
    if (options.repeat < 3) {
        throw InputError(
            fmt::format("--repeat {}: quartiles need at least 3 samples", options.repeat));
    }
    if (!(options.budget > 0 && std::isfinite(options.budget))) {
        throw InputError(fmt::format("--budget {}: a number of seconds above 0", options.budget));
    }
    if (comm.rank() != 0) {
        return;
    }
    if (!options.json.empty()) {
        check_writable(options.json, "--json");
    }
    if (!options.markdown.empty()) {
        if (!options.json.empty() && same_output(options.markdown, options.json)) {
            throw InputError(
                fmt::format("--markdown {}: --json writes to the same file", options.markdown));
        }
        check_writable(options.markdown, "--markdown");
    }
}

void require_one_process(const Comm& comm) {
    if (comm.size() > 1) {
        throw InputError(fmt::format(
            "bench times the kernels of one process: run it without mpirun, not on {} "
            "ranks; only `bench scaling`, `bench abft` and `bench protection` take several",
            comm.size()));
    }
}

}  // namespace quiver::apps::bench
