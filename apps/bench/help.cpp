// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/help.hpp"

#include <algorithm>
#include <iterator>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/bench/kernels/kernels.hpp"

namespace quiver::apps::bench {
std::string footer() {
    std::string text = "KERNEL is a list of\n";
    for (const Kernel* kernel : all_kernels()) {
        text += fmt::format("  {:<25} {}\n", kernel->name(), kernel->formula());
    }
    return text +
           R"(orth (all of them), batched (both), or all of these but the mixed ones; or scaling.

Examples:
  quiver bench tsmttsm
  quiver bench tsmttsm,tsmm --widths 1:64 --scalar s,d,c,z --vs cublas --budget 400 \
      --resume widths.json --plot widths.svg      again and again until no case is left
  quiver bench tsmm --vs openblas,eigen --device host
  quiver bench orth --widths 4,8,16,32,64 --rows 1e6 --vs eigen --device host
  quiver bench tsmttsm --shapes 64x8,8x64 --device cuda
  quiver bench tsmttsm --gram-schmidt --random-shapes 200 --seed 7
  quiver bench tsmttsm --widths 1,4,16,64 --rows 1e3,1e4,1e5,1e6 --plot rows.svg
  quiver bench --reproduce ernst2020 --vs cublas --json paper.json
  quiver bench tsmttsm --widths 1:64 --atomics --model --device cuda
  quiver bench tsmm,tsmttsm --widths 3,8,17 --ld-extra 0,1,3 --vs cublas
  quiver bench tsmttsm-mixed,tsmm-mixed --scalar h,b --widths 1:64 --vs cublas --energy
  quiver bench --blocking gen:spinSZ,L=14 matrix.mtx.gz --budget 300 --plot blocking.svg
  mpirun -n 4 quiver bench scaling --budget 400 --json scaling.json
                        products, solver steps and sums on 1, 2 and 4 of the ranks, and a model
  quiver bench --abft gen:laplace3d,nx=40 --scalar s,d,c,z --faults 10000 --budget 300
  quiver bench --plot-from a.json b.json --plot both.svg --markdown both.md

Exit status: 0 every result is correct; 1 one is not, or a solve has not converged; 2 bad usage; 3 a case failed to run.)";
}

std::string words_of(const CLI::App& command) {
    std::string text = "quiver bench";
    for (const CLI::Option* option : command.get_options()) {
        const std::string name = option->get_name();
        const bool is_file = std::find(std::begin(file_options), std::end(file_options), name) !=
                             std::end(file_options);
        if (option->count() == 0 || is_file) {
            continue;
        }
        text += option->get_positional() ? "" : " " + name;
        for (const std::string& word : option->results()) {
            text += option->get_expected_min() == 0 ? "" : " " + word;
        }
    }
    return text;
}

}  // namespace quiver::apps::bench
