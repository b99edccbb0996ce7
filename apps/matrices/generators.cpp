// SPDX-License-Identifier: BSD-3-Clause
#include "apps/matrices/generators.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <numeric>
#include <string_view>
#include <utility>

#include "apps/matrices/generator_table.hpp"
#include "blockvec/scalar.hpp"

namespace quiver::apps {
namespace {

constexpr std::string_view prefix = "gen:";

std::vector<Generator> all_generators() {
    std::vector<Generator> all;
    for (auto* family : {laplace_generators, spin_generators, lattice_generators,
                         hubbard_generators, topi_generators, matpde_generators}) {
        const std::vector<Generator> members = family();
        all.insert(all.end(), members.begin(), members.end());
    }
    return all;
}

/// Levenshtein's distance, letters without their case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    const auto same = [](char left, char right) { return (left | 0x20) == (right | 0x20); };
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (same(a[i - 1], b[j - 1]) ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row.back();
}

/// "; close ones: A, B", or all names where none is close.
std::string suggest(std::string_view word, const std::vector<const char*>& names) {
    std::string close;
    std::string all;
    for (const char* name : names) {
        const std::string_view candidate = name;
        const bool near =
            edit_distance(word, candidate) <= std::max<std::size_t>(1, candidate.size() / 3) ||
            (word.size() >= 2 && candidate.substr(0, word.size()) == word);
        if (near) {
            close += (close.empty() ? "" : ", ") + std::string(name);
        }
        all += (all.empty() ? "" : ", ") + std::string(name);
    }
    return close.empty() ? "; there are: " + all : "; close ones: " + close;
}

std::string_view name_in(const std::string& spec) {
    std::string_view rest = spec;
    rest.remove_prefix(is_generator(spec) ? prefix.size() : 0);
    return rest.substr(0, rest.find(','));
}

Generator find_generator(const std::string& spec) {
    const std::vector<Generator> all = all_generators();
    const std::string_view name = name_in(spec);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Generator& generator) {
        return generator.info.name == name;
    });
    if (found == all.end()) {
        std::vector<const char*> names;
        for (const Generator& generator : all) {
            names.push_back(generator.info.name);
        }
        throw InputError(spec + ": there is no generator '" + std::string(name) + "'" +
                         suggest(name, names));
    }
    return *found;
}

/// The number of `text` among the words "a|b|c"; -1 if it is none of them.
std::int64_t number_of_word(std::string_view words, std::string_view text) {
    for (std::int64_t number = 0;; ++number) {
        const auto bar = words.find('|');
        if (words.substr(0, bar) == text) {
            return number;
        }
        if (bar == std::string_view::npos) {
            return -1;
        }
        words.remove_prefix(bar + 1);
    }
}

void set_value(Parameters& parameters, const GeneratorKey& key, std::string_view text) {
    const auto refuse = [&](const std::string& wanted) {
        parameters.refuse(std::string(key.name) + "=" + std::string(text) + ": " + wanted);
    };
    const char* end = text.data() + text.size();
    if (key.kind == KeyKind::choice) {
        const std::int64_t number = number_of_word(key.choices, text);
        if (number < 0) {
            refuse(std::string("one of ") + key.choices + " is wanted");
        }
        parameters.set(key.name, number);
    } else if (key.kind == KeyKind::whole) {
        std::int64_t value = 0;
        const auto [stop, code] = std::from_chars(text.data(), end, value);
        if (code == std::errc::result_out_of_range) {
            refuse("the number does not fit 64 bits");
        }
        if (code != std::errc() || stop != end || value < key.least) {
            refuse("a whole number from " + std::to_string(key.least) + " on is wanted");
        }
        parameters.set(key.name, value);
    } else {
        double value = 0;
        const auto [stop, code] = std::from_chars(text.data(), end, value);
        if (code != std::errc() || stop != end || !std::isfinite(value)) {
            refuse("a number is wanted");
        }
        parameters.set(key.name, value);
    }
}

Parameters parse_parameters(const Generator& generator, const std::string& spec,
                            std::string_view rest) {
    Parameters parameters(spec);
    const std::vector<GeneratorKey>& keys = generator.info.keys;
    std::map<std::string, std::string_view> given;
    while (!rest.empty()) {
        rest.remove_prefix(1);  // the comma
        const std::string_view item = rest.substr(0, rest.find(','));
        rest.remove_prefix(item.size());
        const auto equals = item.find('=');
        const std::string name(item.substr(0, equals));
        const bool known = std::any_of(keys.begin(), keys.end(),
                                       [&](const GeneratorKey& key) { return key.name == name; });
        if (!known) {
            std::vector<const char*> names;
            for (const GeneratorKey& key : keys) {
                names.push_back(key.name);
            }
            parameters.refuse(std::string(generator.info.name) + " has no key '" + name + "'" +
                              suggest(name, names));
        }
        if (equals == std::string_view::npos) {
            parameters.refuse("the key " + name + " has no value; write " + name + "=VALUE");
        }
        if (!given.emplace(name, item.substr(equals + 1)).second) {
            parameters.refuse("the key " + name + " is given twice");
        }
    }
    for (const GeneratorKey& key : keys) {
        const auto found = given.find(key.name);
        if (found == given.end()) {
            // The default may be the value of an earlier key.
            const auto earlier = given.find(key.default_value);
            const auto is_key = [&](const GeneratorKey& other) {
                return std::string_view(other.name) == key.default_value;
            };
            const auto other = std::find_if(keys.begin(), keys.end(), is_key);
            if (other == keys.end()) {
                set_value(parameters, key, key.default_value);
            } else {
                set_value(parameters, key,
                          earlier == given.end() ? other->default_value : earlier->second);
            }
        } else {
            set_value(parameters, key, found->second);
        }
    }
    return parameters;
}

template <class T, class S>
CsrRows<T> in_scalar(CsrRows<S>&& rows) {
    if constexpr (std::is_same_v<T, S>) {
        return std::move(rows);
    } else {
        CsrRows<T> result;
        result.map = rows.map;
        result.global_cols = rows.global_cols;
        result.symmetry = rows.symmetry;
        result.row_start = std::move(rows.row_start);
        result.column = std::move(rows.column);
        result.value.reserve(rows.value.size());
        for (const S value : rows.value) {
            if constexpr (is_complex_v<S>) {
                result.value.emplace_back(static_cast<real_t<T>>(value.real()),
                                          static_cast<real_t<T>>(value.imag()));
            } else {
                result.value.emplace_back(static_cast<real_t<T>>(value));
            }
        }
        return result;
    }
}

/// The rows of a matrix whose row function gives scalars S, in scalars T.
template <class T, class S>
CsrRows<T> make_rows(const Comm& comm, const GeneratedMatrix& matrix,
                     const std::function<void(std::int64_t, RowEntries<S>&)>& make_row,
                     int threads) {
    CsrRows<S> rows = rows_from_callback<S>(comm, matrix.rows, matrix.symmetry, make_row,
                                            Partition::by_rows, threads);
    CsrRows<T> result;
    comm.agree([&] { result = in_scalar<T>(std::move(rows)); });
    return result;
}

}  // namespace

GeneratedMatrix make_matrix(const std::string& spec) {
    const Generator generator = find_generator(spec);
    std::string_view keys = spec;
    const std::string_view name = name_in(spec);
    keys.remove_prefix(static_cast<std::size_t>(name.data() + name.size() - spec.data()));
    return generator.make(parse_parameters(generator, spec, keys));
}

std::vector<GeneratorInfo> generators() {
    std::vector<GeneratorInfo> result;
    for (const Generator& generator : all_generators()) {
        result.push_back(generator.info);
    }
    return result;
}

bool is_generator(const std::string& spec) {
    return spec.starts_with(prefix);
}

bool is_complex_generator(const std::string& spec) {
    return find_generator(spec).info.complex;
}

template <class T>
CsrRows<T> generate(const Comm& comm, const std::string& spec, int threads) {
    GeneratedMatrix matrix;
    comm.agree([&] {
        matrix = make_matrix(spec);
        if (matrix.make_complex_row && !is_complex_v<T>) {
            throw InputError(spec + ": the matrix is complex, real scalars cannot hold it");
        }
    });
    if constexpr (is_complex_v<T>) {
        if (matrix.make_complex_row) {
            return make_rows<T>(comm, matrix, matrix.make_complex_row, threads);
        }
    }
    return make_rows<T>(comm, matrix, matrix.make_row, threads);
}

std::optional<std::vector<double>> exact_eigenvalues(const std::string& spec, int k,
                                                     bool smallest) {
    const GeneratedMatrix matrix = make_matrix(spec);
    if (!matrix.eigenvalues) {
        return std::nullopt;
    }
    return matrix.eigenvalues(static_cast<int>(std::min<std::int64_t>(k, matrix.rows)), smallest);
}

template CsrRows<float> generate(const Comm&, const std::string&, int);
template CsrRows<double> generate(const Comm&, const std::string&, int);
template CsrRows<std::complex<float>> generate(const Comm&, const std::string&, int);
template CsrRows<std::complex<double>> generate(const Comm&, const std::string&, int);

}  // namespace quiver::apps
