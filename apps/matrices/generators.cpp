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

namespace quiver::apps {
namespace {

constexpr std::string_view prefix = "gen:";

std::vector<Generator> all_generators() {
    std::vector<Generator> all;
    for (auto* family : {laplace_generators, spin_sz_generators}) {
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

const Generator& find_generator(const std::vector<Generator>& all, const std::string& spec,
                                std::string_view name) {
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

void set_value(Parameters& parameters, const GeneratorKey& key, std::string_view text) {
    const auto refuse = [&](const std::string& wanted) {
        parameters.refuse(std::string(key.name) + "=" + std::string(text) + ": " + wanted);
    };
    const char* end = text.data() + text.size();
    if (key.whole) {
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

GeneratedMatrix make_matrix(const std::string& spec) {
    const std::vector<Generator> all = all_generators();
    std::string_view rest = spec;
    rest.remove_prefix(is_generator(spec) ? prefix.size() : 0);
    const std::string_view name = rest.substr(0, rest.find(','));
    const Generator& generator = find_generator(all, spec, name);
    return generator.make(parse_parameters(generator, spec, rest.substr(name.size())));
}

template <class T>
CsrRows<T> in_scalar(CsrRows<double>&& rows) {
    if constexpr (std::is_same_v<T, double>) {
        return std::move(rows);
    } else {
        CsrRows<T> result;
        result.map = rows.map;
        result.global_cols = rows.global_cols;
        result.symmetry = rows.symmetry;
        result.row_start = std::move(rows.row_start);
        result.column = std::move(rows.column);
        result.value.reserve(rows.value.size());
        for (const double value : rows.value) {
            result.value.emplace_back(static_cast<real_t<T>>(value));
        }
        return result;
    }
}

}  // namespace

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

template <class T>
CsrRows<T> generate(const Comm& comm, const std::string& spec, int threads) {
    GeneratedMatrix matrix;
    comm.agree([&] { matrix = make_matrix(spec); });
    CsrRows<double> rows = rows_from_callback<double>(comm, matrix.rows, matrix.symmetry,
                                                      matrix.make_row, Partition::by_rows, threads);
    CsrRows<T> result;
    comm.agree([&] { result = in_scalar<T>(std::move(rows)); });
    return result;
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
