// SPDX-License-Identifier: BSD-3-Clause
// The problems on which eigensolvers are compared, with every copy of every wanted eigenvalue.
#pragma once

#include <string>
#include <vector>

namespace quiver::rivals {

struct Case {
    std::string name;
    /// gen:..., or a file in the data folder.
    std::string matrix;
    bool largest = false;
    /// The wanted ones, ascending.
    std::vector<double> known;
    /// ||A||_2
    double norm = 1;

    int k() const { return static_cast<int>(known.size()); }
    bool generated() const { return matrix.starts_with("gen:"); }
};

/// The whole comparison, or one of a minute.
std::vector<Case> cases(bool quick);

/// How many of the known ones have no partner within `error` among the found, both ascending.
int missed(const std::vector<double>& known, const std::vector<double>& found, double error);

}  // namespace quiver::rivals
