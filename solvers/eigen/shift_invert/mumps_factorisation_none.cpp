// SPDX-License-Identifier: BSD-3-Clause
// Replaces mumps_factorisation.cpp in a build without MUMPS.
#include <complex>

#include "blockvec/error.hpp"
#include "solvers/eigen/shift_invert.hpp"
#include "solvers/eigen/shift_invert/mumps_factorisation.hpp"

namespace quiver {
namespace {

[[noreturn]] void refuse_mumps() {
    throw UnsupportedError(
        "this build has no MUMPS: install libmumps-dev, then configure and build again");
}

}  // namespace

const char* mumps_version() {
    return "";
}

bool mumps_is_available(const Comm& /*comm*/) {
    return false;
}

std::string missing_mumps() {
    return "MUMPS (a build with libmumps-dev)";
}

template <class W>
struct MumpsFactorisation<W>::Data {};

template <class W>
MumpsFactorisation<W>::MumpsFactorisation(const Comm& /*comm*/, int /*threads*/,
                                          const CsrRows<W>& /*a*/, const CsrRows<W>* /*b*/,
                                          Announce /*announce*/) {
    refuse_mumps();
}

template <class W>
MumpsFactorisation<W>::~MumpsFactorisation() = default;

template <class W>
const MumpsForecast& MumpsFactorisation<W>::forecast() const {
    refuse_mumps();
}

template <class W>
FactorFacts MumpsFactorisation<W>::factor(const CsrRows<W>& /*a*/, const CsrRows<W>* /*b*/,
                                          double /*sigma*/) {
    refuse_mumps();
}

template <class W>
void MumpsFactorisation<W>::solve(BlockView<W> /*x*/) {
    refuse_mumps();
}

template <class W>
void MumpsFactorisation<W>::follow(int /*job*/) {
    refuse_mumps();
}

template class MumpsFactorisation<double>;
template class MumpsFactorisation<std::complex<double>>;

}  // namespace quiver
