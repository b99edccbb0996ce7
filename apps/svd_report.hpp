// SPDX-License-Identifier: BSD-3-Clause
// The report of `quiver svd`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/report.hpp"
#include "blockvec/scalar.hpp"
#include "solvers/svd/pca.hpp"

namespace quiver::apps {

struct SvdReport {
    enum class Kind : std::uint8_t { block, pca, sparse, dense } kind = Kind::block;
    std::string input;
    std::string dataset;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    Dtype scalar = Dtype::d;
    std::vector<double> values;
    std::vector<double> errors;
    /// One right vector or component each; empty for large matrices.
    std::vector<std::vector<double>> vectors;

    // Of a block.
    int rank = 0;
    bool from_gram = false;

    // Of points.
    PcaResult pca;

    /// Of a sparse matrix or a large dense one, which has no nonzeros; the fields are those of
    /// SparseSvd and SvdsOptions.
    struct Sparse {
        std::int64_t nonzeros = 0;
        int wanted = 0;
        bool smallest = false;
        double tol = 0;
        std::vector<double> residuals;
        double norm_estimate = 0;
        bool converged = true;
        bool interrupted = false;
        bool verified = false;
        bool dense = false;
        std::string method;
        std::int64_t iterations = 0;
        std::int64_t products = 0;
        std::string message;
    } sparse;

    RunFacts run;
};

std::string to_table(const SvdReport& report);
std::string to_json(const SvdReport& report);

}  // namespace quiver::apps
