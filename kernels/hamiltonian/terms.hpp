// SPDX-License-Identifier: BSD-3-Clause
// A Hamiltonian of spins or fermions as a list of terms, and its text form.
#pragma once

#include <complex>
#include <optional>
#include <string>
#include <vector>

namespace quiver {

/// spins: spins 1/2, a one is spin up; fermions: with spin up and down; spinless: one fermion a
/// site.
enum class Particles { spins, fermions, spinless };

/// "spins", "fermions", "spinless".
const char* to_string(Particles particles);

/// One operator of a term. Spins: + - x y z are S+, S-, Sx, Sy, Sz (eigenvalues +-1/2). Fermions: +
/// creates, - annihilates, n counts.
struct SiteOperator {
    char action;
    bool up;  // fermions: acts on spin up
    int site;
};

/// coefficient * product of the operators, the last one acts first.
struct HamiltonianTerm {
    std::complex<double> coefficient;
    std::vector<SiteOperator> operators;
};

/// The numbers that the Hamiltonian conserves and that select the basis states. Empty: all states.
struct Sector {
    /// Up spins, or all fermions.
    std::optional<int> ones = {};
    /// Fermions of each spin; both or none.
    std::optional<int> up = {}, down = {};
    /// The eigenvalue exp(2 pi i momentum / sites) of the translation from site i to i + 1.
    std::optional<int> momentum = {};
    /// The eigenvalue 1 or -1 of the reflection from site i to sites - 1 - i; 0: not used.
    int reflection = 0;
    /// The eigenvalue 1 or -1 of the flip of all spins, of fermions the exchange of up and down; 0:
    /// not used.
    int inversion = 0;

    bool has_symmetries() const { return momentum || reflection != 0 || inversion != 0; }
};

struct HamiltonianModel {
    Particles particles = Particles::spins;
    int sites = 0;
    std::vector<HamiltonianTerm> terms;
    /// The operator A of spectral functions <0| A^+ delta(E - H) A |0>; may be empty.
    std::vector<HamiltonianTerm> probe;
    Sector sector;

    int bits() const { return particles == Particles::fermions ? 2 * sites : sites; }
    /// The bit of a state that belongs to a site; up is above down.
    int bit_of(const SiteOperator& one) const {
        return particles == Particles::fermions && one.up ? sites + one.site : one.site;
    }
    /// True if the matrix or the probe may have complex entries: if the momentum is neither 0 nor
    /// pi, or if the coefficient of a term with an even number of y has an imaginary part, or that
    /// of a term with an odd number of y a real part.
    bool is_complex() const;
};

/// Reads the text form (docs/exact_diagonalisation.md), one statement a line:
///
///     spins N | fermions N | spinless N       first
///     sector sz M | up N | down N | particles N | momentum K | reflection S | inversion S
///     term C OPERATORS... SITES... [hc]       adds C O_1 O_2 ..., with hc also the adjoint
///     ring C OPERATORS... SITES... [hc]       the same for all N translations on the ring
///     chain C OPERATORS... SITES... [hc]      the same for the translations within 0 .. N - 1
///     probe C OPERATORS... SITES...           adds a term to the probe
///
/// C is a real number or (re,im). Operators: spins + - x y z; spinless + - n; fermions +u -u nu +d
/// -d nd. # starts a comment. A later sector replaces an earlier one of the same name. Throws
/// InputError "SOURCE:LINE: ...", naming the word.
HamiltonianModel parse_hamiltonian(const std::string& text, const std::string& source);

/// The text of a model "NAME,key=value,...":
///     heisenberg,L=16,J=1,Delta=1,h=0,boundary=periodic    J (Sx Sx + Sy Sy + Delta Sz Sz) - h Sz
///     ising,L=16,J=1,h=1,boundary=periodic                 -J sum sz sz - h sum sx, s = 2 S
///     hubbard,L=8,t=1,U=4,boundary=periodic                -t hopping + U n_up n_down
/// The boundary is periodic or open. Throws InputError.
std::string model_text(const std::string& spec);

}  // namespace quiver
