// SPDX-License-Identifier: BSD-3-Clause
// `quiver warm`: compiles a GPU's kernels ahead of time.
#include "kernels/warm.hpp"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "apps/subcommands.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps {
namespace {

struct WarmCommand {
    PackOptions options;
};

int run_warm(const Comm& comm, PackOptions options) {
    PackResult pack;
    const auto begin = std::chrono::steady_clock::now();
    comm.agree([&] {
        if (comm.size() > 1) {
            throw InputError("warm: one process compiles on all cores; run it without mpirun");
        }
        if (options.threads < 0) {
            throw InputError(
                fmt::format("warm: --threads {} must not be negative", options.threads));
        }
        if (options.arch.empty()) {
            options.arch = device_architecture();
        }
        const bool terminal = ::isatty(STDERR_FILENO) == 1;
        pack = make_pack(options, [&](int done, int all) {
            if (terminal && (done % 10 == 0 || done == all)) {
                fmt::print(stderr, "\r{} of {} kernels{}", done, all, done == all ? "\n" : "");
            }
        });
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    fmt::print("{}: {} kernels for {}, {} compiled in {:.1f} s, {:.1f} MB\n", pack.file,
               pack.kernels, options.arch, pack.compiled, seconds.count(),
               static_cast<double>(pack.bytes) / 1e6);
    return success;
}

}  // namespace

void add_warm(CLI::App& app, Action& chosen) {
    CLI::App* const warm = app.add_subcommand(
        "warm",
        "Compile the kernels of a GPU ahead of time, so that solves wait less for a compiler");
    const auto command = std::make_shared<WarmCommand>();
    warm->add_option("--arch", command->options.arch,
                     "Architecture, sm_90 for H100 and H200; this machine's GPU if not given");
    warm->add_option("-o,--output", command->options.folder,
                     "Folder for quiver-ARCH.pack; the cache of compiled kernels if not given");
    warm->add_flag("--wide", command->options.wide, "Also compile kernels for rarer block widths");
    warm->add_option("--threads", command->options.threads, "Threads that compile; 0: all cores")
        ->capture_default_str();
    warm->footer(
        "With --arch no GPU is needed, only CUDA's compiler library. Processes look for packs in "
        "the folders\n"
        "of QUIVER_PACKS (separated by colons), then in the cache, the build and the "
        "installation.\n\n"
        "Examples:\n"
        "  quiver warm                                   for this machine's GPU\n"
        "  quiver warm --arch sm_90 -o /shared/quiver    for a cluster; set "
        "QUIVER_PACKS=/shared/quiver\n");
    warm->callback([command, &chosen] {
        chosen = [command](const Comm& comm) { return run_warm(comm, command->options); };
    });
}

}  // namespace quiver::apps
