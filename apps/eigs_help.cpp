// SPDX-License-Identifier: BSD-3-Clause
#include "apps/eigs_help.hpp"

#include <fmt/format.h>

#include "apps/matrices/generators.hpp"

namespace quiver::apps {
namespace {

constexpr const char* eigs_examples =
    R"(PRECONDITIONER: none, jacobi, block-jacobi,size=8, chebyshev,degree=8, ic, ilu, ic,sweeps=4,
ilu,sweeps=4 (close to the inverse of A), or ldlt,shift=VALUE: a complete factorisation of
A - VALUE (B), the target where no shift is given, else 0.

Examples:
  quiver eigs matrix.mtx -k 20 --which largest
  quiver eigs gen:laplace3d,nx=40,ny=40,nz=40 -k 10 --block 4 --tol 1e-8
  quiver eigs gen:spinSZ,L=16 -k 3 --scalar s
  quiver eigs gen:topi,nx=12 --window -0.1:0.1
  quiver eigs stiffness.mtx --mass mass.mtx -k 10 --precond ldlt
  quiver eigs gen:anderson,L=12 --which target:0 -k 20 --precond ldlt
  mpirun -n 4 quiver eigs matrix.mtx.gz --device cuda --json out.json
  mpirun -n 4 quiver eigs matrix.mtx.gz --checkpoint saved --resume saved --every 600

Exit status: 0 converged and every copy verified; 1 not (results are still printed and written,
and marked); 2 bad usage or input; 3 a failure while running.)";

std::string generator_list() {
    std::string text = "MATRIX is a Matrix Market file (.mtx, .mtx.gz) or one of\n";
    for (const GeneratorInfo& generator : generators()) {
        std::string spec = fmt::format("gen:{}", generator.name);
        for (const GeneratorKey& key : generator.keys) {
            spec += fmt::format(",{}={}", key.name, key.default_value);
        }
        text += fmt::format("  {:<34} {}\n", spec, generator.description);
    }
    return text;
}

}  // namespace

std::string eigs_footer() {
    return generator_list() + '\n' + eigs_examples;
}

}  // namespace quiver::apps
