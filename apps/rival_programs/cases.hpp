// SPDX-License-Identifier: BSD-3-Clause
// The problems on which eigensolvers are compared, with every copy of every wanted eigenvalue.
#pragma once

#include <string>
#include <vector>

namespace quiver::rivals {

/// All solvers stop at ||r|| <= tolerance ||A||.
constexpr double tolerance = 1e-8;

struct Case {
    std::string name;
    /// gen:..., or a file in the data folder.
    std::string matrix;
    bool largest = false;
    /// The wanted eigenvalues, ascending.
    std::vector<double> known;
    /// ||A||_2
    double norm = 1;
    /// A computed eigenvalue with at most this error counts as a known one.
    double error = 0;

    int k() const { return static_cast<int>(known.size()); }
    bool generated() const { return matrix.starts_with("gen:"); }
};

/// The cases of the whole comparison, or of a quick comparison that takes a minute.
std::vector<Case> cases(bool quick);

/// The number of known eigenvalues without a computed one within `error`; each computed eigenvalue
/// counts once. Both lists ascend.
int missed(const std::vector<double>& known, const std::vector<double>& found, double error);

}  // namespace quiver::rivals
