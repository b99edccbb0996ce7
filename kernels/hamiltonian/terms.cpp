// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/hamiltonian/terms.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "kernels/hamiltonian/words.hpp"

namespace quiver {
namespace {

using Words = std::vector<std::string>;

/// The operators that a kind of particles has, as the file names them.
const Words& operator_names(Particles particles) {
    static const Words spins{"+", "-", "x", "y", "z"};
    static const Words spinless{"+", "-", "n"};
    static const Words fermions{"+u", "-u", "nu", "+d", "-d", "nd"};
    return particles == Particles::spins      ? spins
           : particles == Particles::spinless ? spinless
                                              : fermions;
}

std::string listed(const Words& words) {
    std::string text;
    for (const std::string& word : words) {
        text += (text.empty() ? "" : " ") + word;
    }
    return text;
}

/// Reads the statements of a file one after the other.
class TermReader {
  public:
    explicit TermReader(const std::string& source) : source_(source) {}

    void read(const std::string& text) {
        std::istringstream lines(text);
        std::string line;
        while (std::getline(lines, line)) {
            ++line_;
            std::istringstream words(line.substr(0, line.find('#')));
            words_.clear();
            for (std::string word; words >> word;) {
                words_.push_back(word);
            }
            if (!words_.empty()) {
                take();
            }
        }
        if (model_.sites == 0) {
            throw InputError(source_ + ": no statement; the first one is `spins N`, `fermions N` " +
                             "or `spinless N`");
        }
        check_sector();
    }
    HamiltonianModel model() { return std::move(model_); }

  private:
    [[noreturn]] void refuse(const std::string& text) const {
        throw InputError(source_, line_, text);
    }
    std::string quoted(const std::string& word) const { return "`" + word + "`"; }

    std::int64_t whole(const std::string& word, std::int64_t least, std::int64_t most) const {
        std::int64_t value = 0;
        if (parse_whole(word, value) != std::errc{} || value < least || value > most) {
            refuse(quoted(word) + " is not a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most));
        }
        return value;
    }
    double real(const std::string& word) const {
        double value = 0;
        if (parse_real(word, value) != std::errc{} || !std::isfinite(value)) {
            refuse(quoted(word) + " is not a finite number");
        }
        return value;
    }
    std::complex<double> coefficient(const std::string& word) const {
        const std::size_t comma = word.find(',');
        if (word.front() != '(') {
            return real(word);
        }
        if (word.back() != ')' || comma == std::string::npos) {
            refuse(quoted(word) + " is not a number or (re,im) without blanks");
        }
        return {real(word.substr(1, comma - 1)),
                real(word.substr(comma + 1, word.size() - comma - 2))};
    }
    void require_words(std::size_t count, const char* form) const {
        if (words_.size() != count) {
            refuse(quoted(words_[0]) + " with " + std::to_string(words_.size() - 1) +
                   " words after it; the form is `" + form + "`");
        }
    }

    void take() {
        const std::string& statement = words_[0];
        const std::map<std::string, Particles> kinds{{"spins", Particles::spins},
                                                     {"fermions", Particles::fermions},
                                                     {"spinless", Particles::spinless}};
        if (const auto kind = kinds.find(statement); kind != kinds.end()) {
            if (model_.sites > 0) {
                refuse("a second " + quoted(statement) + "; a file has one statement of the sites");
            }
            require_words(2, (statement + " N").c_str());
            model_.particles = kind->second;
            const int most = kind->second == Particles::fermions ? most_bits / 2 : most_bits;
            model_.sites = static_cast<int>(whole(words_[1], 1, most));
            return;
        }
        if (model_.sites == 0) {
            refuse(quoted(statement) +
                   " before the sites; the first statement is `spins N`, `fermions N` or " +
                   "`spinless N`");
        }
        if (statement == "sector") {
            require_words(3, "sector NAME VALUE");
            take_sector(words_[1], words_[2]);
        } else if (statement == "term" || statement == "ring" || statement == "chain" ||
                   statement == "probe") {
            take_term(statement);
        } else {
            refuse(quoted(statement) + " is none of spins fermions spinless sector term ring " +
                   "chain probe");
        }
    }

    void take_sector(const std::string& name, const std::string& value) {
        Sector& sector = model_.sector;
        const int sites = model_.sites;
        const bool spins = model_.particles == Particles::spins;
        const bool fermions = model_.particles == Particles::fermions;
        const auto number = [&](int most) { return static_cast<int>(whole(value, 0, most)); };
        if (name == "sz" && spins) {
            const double ups = real(value) + sites / 2.0;
            if (ups != std::floor(ups) || ups < 0 || ups > sites) {
                refuse("sector sz " + value + ": " + std::to_string(sites) +
                       " spins have a total Sz of " + number_text(-sites / 2.0) + ", " +
                       number_text(1 - sites / 2.0) + ", ..., " + number_text(sites / 2.0));
            }
            sector.ones = static_cast<int>(ups);
        } else if (name == "up" && fermions) {
            sector.up = number(sites);
        } else if (name == "down" && fermions) {
            sector.down = number(sites);
        } else if (name == "particles" && !spins) {
            sector.ones = number(model_.bits());
        } else if (name == "momentum") {
            sector.momentum = number(sites - 1);
        } else if (name == "reflection" || (name == "inversion" && (spins || fermions))) {
            const std::int64_t sign = whole(value, -1, 1);
            if (sign == 0) {
                refuse("sector " + name + " 0: the eigenvalue is 1 or -1");
            }
            (name == "reflection" ? sector.reflection : sector.inversion) = static_cast<int>(sign);
        } else {
            refuse("sector " + quoted(name) + " is none of those of " +
                   to_string(model_.particles) + ": " +
                   (spins      ? "sz momentum reflection inversion"
                    : fermions ? "up down particles momentum reflection inversion"
                               : "particles momentum reflection"));
        }
    }

    void take_term(const std::string& statement) {
        if (words_.size() < 2) {
            refuse(quoted(statement) + " without a coefficient");
        }
        HamiltonianTerm term{coefficient(words_[1]), {}};
        std::size_t at = 2;
        const bool adds_adjoint = words_.back() == "hc" && statement != "probe";
        const std::size_t end = words_.size() - (adds_adjoint ? 1 : 0);
        const Words& names = operator_names(model_.particles);
        std::int64_t unused = 0;
        for (; at < end && parse_whole(words_[at], unused) != std::errc{}; ++at) {
            const std::string& word = words_[at];
            if (std::find(names.begin(), names.end(), word) == names.end()) {
                refuse(quoted(word) + " is not an operator of " + to_string(model_.particles) +
                       ": " + listed(names));
            }
            term.operators.push_back({word[0], word.size() > 1 && word[1] == 'u', 0});
        }
        const std::size_t count = term.operators.size();
        if (end - at != count) {
            refuse(std::to_string(count) + " operators, but " + std::to_string(end - at) +
                   " sites");
        }
        int least = model_.sites;
        int most = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const int site = static_cast<int>(whole(words_[at + i], 0, model_.sites - 1));
            term.operators[i].site = site;
            least = std::min(least, site);
            most = std::max(most, site);
        }
        if (statement == "term" || statement == "probe") {
            add(term, statement == "probe", adds_adjoint);
            return;
        }
        if (count == 0) {
            refuse(quoted(statement) + " without operators; a constant is `term C`");
        }
        const bool ring = statement == "ring";
        for (int shift = ring ? 0 : -least; shift < model_.sites - (ring ? 0 : most); ++shift) {
            HamiltonianTerm moved = term;
            for (SiteOperator& one : moved.operators) {
                one.site = (one.site + shift) % model_.sites;
            }
            add(moved, false, adds_adjoint);
        }
    }

    void add(const HamiltonianTerm& term, bool to_probe, bool adds_adjoint) {
        (to_probe ? model_.probe : model_.terms).push_back(term);
        if (adds_adjoint) {
            HamiltonianTerm adjoint{std::conj(term.coefficient),
                                    {term.operators.rbegin(), term.operators.rend()}};
            for (SiteOperator& one : adjoint.operators) {
                one.action = one.action == '+' ? '-' : one.action == '-' ? '+' : one.action;
            }
            model_.terms.push_back(adjoint);
        }
    }

    void check_sector() const {
        const Sector& sector = model_.sector;
        const auto wrong = [&](const std::string& text) {
            throw InputError(source_ + ": " + text);
        };
        if (sector.up.has_value() != sector.down.has_value()) {
            wrong(std::string("sector ") + (sector.up ? "up" : "down") + " without sector " +
                  (sector.up ? "down" : "up"));
        }
        if (sector.up && sector.ones && *sector.up + *sector.down != *sector.ones) {
            wrong("sector up " + std::to_string(*sector.up) + " and down " +
                  std::to_string(*sector.down) + ", but particles " + std::to_string(*sector.ones));
        }
        const int k = sector.momentum.value_or(0);
        if (sector.reflection != 0 && k != 0 && 2 * k != model_.sites) {
            wrong("sector reflection with momentum " + std::to_string(k) +
                  ": a reflection exchanges the momenta k and " + std::to_string(model_.sites) +
                  " - k; omit one of the two sectors");
        }
        const bool even = model_.particles == Particles::spins
                              ? !sector.ones || 2 * *sector.ones == model_.sites
                              : sector.up == sector.down;
        if (sector.inversion != 0 && !even) {
            wrong(model_.particles == Particles::spins
                      ? "sector inversion with a total Sz that is not 0; omit one of the two"
                      : "sector inversion with different numbers of up and down; omit one of the "
                        "two");
        }
    }

    const std::string& source_;
    std::int64_t line_ = 0;
    Words words_;
    HamiltonianModel model_;
};

/// The values of the keys of a model.
class ModelKeys {
  public:
    ModelKeys(const std::string& spec, std::map<std::string, std::string> defaults)
        : spec_(spec), values_(std::move(defaults)) {
        std::istringstream words(spec);
        std::string word;
        std::getline(words, word, ',');
        while (std::getline(words, word, ',')) {
            const std::size_t equals = word.find('=');
            const std::string key = word.substr(0, equals);
            if (equals == std::string::npos || !values_.contains(key)) {
                Words keys;
                for (const auto& [name, value] : values_) {
                    keys.push_back(name);
                }
                throw InputError(spec + ": `" + word + "` is not KEY=VALUE with a key of this " +
                                 "model: " + listed(keys));
            }
            values_[key] = word.substr(equals + 1);
        }
        if (values_["boundary"] != "periodic" && values_["boundary"] != "open") {
            throw InputError(spec + ": boundary=" + values_["boundary"] +
                             " is neither periodic nor open");
        }
    }
    std::string sites() { return values_["L"]; }
    double number(const std::string& key) {
        double value = 0;
        if (parse_real(values_[key], value) != std::errc{} || !std::isfinite(value)) {
            throw InputError(spec_ + ": " + key + "=" + values_[key] + " is not a number");
        }
        return value;
    }
    /// "ring C rest" or "chain C rest".
    std::string bonds(double coefficient, const std::string& rest) {
        return (values_["boundary"] == "periodic" ? "ring " : "chain ") +
               number_text(coefficient, 17) + " " + rest + "\n";
    }
    static std::string sites_term(double coefficient, const std::string& rest) {
        return coefficient == 0 ? "" : "ring " + number_text(coefficient, 17) + " " + rest + "\n";
    }

  private:
    const std::string& spec_;
    std::map<std::string, std::string> values_;
};

}  // namespace

const char* to_string(Particles particles) {
    return particles == Particles::spins      ? "spins"
           : particles == Particles::fermions ? "fermions"
                                              : "spinless";
}

bool HamiltonianModel::is_complex() const {
    const int k = sector.momentum.value_or(0);
    const auto is_complex_term = [](const HamiltonianTerm& term) {
        const auto ys = std::count_if(term.operators.begin(), term.operators.end(),
                                      [](const SiteOperator& one) { return one.action == 'y'; });
        return (ys % 2 == 0 ? term.coefficient.imag() : term.coefficient.real()) != 0;
    };
    return (k != 0 && 2 * k != sites) || std::any_of(terms.begin(), terms.end(), is_complex_term) ||
           std::any_of(probe.begin(), probe.end(), is_complex_term);
}

HamiltonianModel parse_hamiltonian(const std::string& text, const std::string& source) {
    TermReader reader(source);
    reader.read(text);
    return reader.model();
}

std::string model_text(const std::string& spec) {
    const std::string name = spec.substr(0, spec.find(','));
    if (name == "heisenberg") {
        ModelKeys keys(
            spec, {{"L", "16"}, {"J", "1"}, {"Delta", "1"}, {"h", "0"}, {"boundary", "periodic"}});
        const double j = keys.number("J");
        return "spins " + keys.sites() + "\n" + keys.bonds(j / 2, "+ - 0 1 hc") +
               keys.bonds(j * keys.number("Delta"), "z z 0 1") +
               ModelKeys::sites_term(-keys.number("h"), "z 0");
    }
    if (name == "ising") {
        ModelKeys keys(spec, {{"L", "16"}, {"J", "1"}, {"h", "1"}, {"boundary", "periodic"}});
        return "spins " + keys.sites() + "\n" + keys.bonds(-4 * keys.number("J"), "z z 0 1") +
               ModelKeys::sites_term(-2 * keys.number("h"), "x 0");
    }
    if (name == "hubbard") {
        ModelKeys keys(spec, {{"L", "8"}, {"t", "1"}, {"U", "4"}, {"boundary", "periodic"}});
        const double t = keys.number("t");
        return "fermions " + keys.sites() + "\n" + keys.bonds(-t, "+u -u 0 1 hc") +
               keys.bonds(-t, "+d -d 0 1 hc") +
               ModelKeys::sites_term(keys.number("U"), "nu nd 0 0");
    }
    throw InputError("model:" + spec + ": `" + name +
                     "` is none of the models heisenberg, ising, hubbard");
}

}  // namespace quiver
