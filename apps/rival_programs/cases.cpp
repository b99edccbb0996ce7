// SPDX-License-Identifier: BSD-3-Clause
#include "apps/rival_programs/cases.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

namespace quiver::rivals {
namespace {

double line(int n, int i) {
    const double s = std::sin(0.5 * std::numbers::pi * (i + 1) / (n + 1));
    return 4 * s * s;
}

/// Four times the residual at which the solvers stop.
double default_error(double norm) {
    return 4 * tolerance * norm;
}

Case laplace3d(int n, int k) {
    // The indices of every wanted eigenvalue are below k.
    std::vector<double> values;
    const int most = std::min(n, k);
    for (int i = 0; i < most; ++i) {
        for (int j = 0; j < most; ++j) {
            for (int l = 0; l < most; ++l) {
                values.push_back(line(n, i) + line(n, j) + line(n, l));
            }
        }
    }
    std::sort(values.begin(), values.end());
    values.resize(static_cast<std::size_t>(k));
    return {fmt::format("laplace3d nx={}, {} smallest", n, k),
            fmt::format("gen:laplace3d,nx={}", n),
            false,
            std::move(values),
            3 * line(n, n - 1),
            default_error(3 * line(n, n - 1))};
}

/// Laplacian of a 3D mesh (brack2 of the Walshaw collection), 62631 rows. Inertia counts confirm
/// the outermost ten eigenvalues of each end. Krylov-Schur, Lanczos, Jacobi-Davidson and subspace
/// iteration agree on all twenty.
Case brack2(bool largest) {
    constexpr double norm = 33.275993377375;
    if (largest) {
        return {"brack2_lap, 20 largest",
                "brack2_lap.mtx.gz",
                true,
                {28.57130765874, 28.60259842601, 28.6542422967,  28.66062411599, 28.66548208222,
                 28.74055108245, 28.79653428282, 29.26840713431, 29.36301967715, 29.4011045358,
                 29.43564011339, 29.5251991001,  29.76396618715, 29.78725001358, 30.32216402939,
                 30.38622291005, 31.29820367805, 31.37476151941, 32.27890672295, 33.27599337738},
                norm,
                default_error(norm)};
    }
    return {"brack2_lap, 20 smallest",
            "brack2_lap.mtx.gz",
            false,
            {0,
             0.001087001236016,
             0.005695413543541,
             0.009799367831937,
             0.01564338094802,
             0.0199000724152,
             0.02264663054485,
             0.02352576422887,
             0.02954606560067,
             0.03750015823366,
             0.03848439343527,
             0.03909608439444,
             0.04188016086778,
             0.04363071776004,
             0.04994862291865,
             0.0512122197368,
             0.05315091213685,
             0.05734241111496,
             0.06446404972418,
             0.06708891439982},
            norm,
            default_error(norm)};
}

/// Heisenberg ring, S_z = 0. For 14 spins, inertia counts confirm all copies. For 20 spins, the
/// ground state agrees with the Bethe ansatz, and all block solvers agree on the others.
Case spin_ring(bool quick) {
    if (quick) {
        return {
            "spinSZ L=14, 10 lowest",
            "gen:spinSZ,L=14",
            false,
            {-25.05419813419, -23.82577529591, -22.99225069076, -22.23425133247, -22.23425133247,
             -21.2468843007, -21.2468843007, -20.45518172799, -20.24962197425, -20.24962197425},
            25.05419813419,
            default_error(25)};
    }
    return {"spinSZ L=20, 10 lowest",
            "gen:spinSZ,L=20",
            false,
            {-35.61754611951, -34.74576394475, -34.21753828844, -33.63032593511, -33.63032593511,
             -32.87369434484, -32.87369434484, -32.29004202152, -32.22561252361, -32.22561252361},
            35.6175461195057,
            default_error(35)};
}

/// Stiffness matrices of the Harwell-Boeing collection, eigenvalues by LAPACK.
Case square_plate() {
    constexpr double norm = 6.760303644561571e7;
    return {"bcsstk09, 10 smallest",
            "bcsstk09.mtx.gz",
            false,
            {7102.229057198383, 27341.55790256163, 27341.55790260856, 54956.82031214312,
             78573.62574567024, 79580.81381387246, 114650.90394065603, 114650.90394067086,
             175872.44984142526, 175872.4498414523},
            norm,
            default_error(norm)};
}

/// The wanted eigenvalues are below 1e-9 ||A||, less than the residual at which the solvers stop. A
/// smaller error than in the other cases shows whether a solver has separated them.
Case fluid_flow() {
    return {"bcsstk13, 10 smallest",
            "bcsstk13.mtx.gz",
            false,
            {284.3328126355871, 406.1008460212174, 419.44605163985324, 583.3365957042458,
             719.863643290486, 837.4055470760771, 950.4181420720995, 961.4360787549301,
             1525.127686006464, 1551.9859161087618},
            3.1148119691672637e12,
            1.0};
}

}  // namespace

std::vector<Case> cases(bool quick) {
    if (quick) {
        return {laplace3d(24, 10), brack2(true), spin_ring(true), square_plate()};
    }
    return {laplace3d(60, 10), brack2(true),   brack2(false),
            spin_ring(false),  square_plate(), fluid_flow()};
}

int missed(const std::vector<double>& known, const std::vector<double>& found, double error) {
    std::size_t next = 0;
    int count = 0;
    for (const double value : known) {
        while (next < found.size() && found[next] < value - error) {
            ++next;
        }
        if (next < found.size() && found[next] <= value + error) {
            ++next;
        } else {
            ++count;
        }
    }
    return count;
}

}  // namespace quiver::rivals
