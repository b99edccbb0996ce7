// SPDX-License-Identifier: BSD-3-Clause
#include "apps/matrices/generators.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <complex>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "apps/matrices/generator_table.hpp"
#include "apps/report.hpp"
#include "apps/suggest.hpp"
#include "blockvec/host_memory.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"

namespace quiver::apps {
namespace {

constexpr std::string_view prefix = "gen:";

std::vector<Generator> all_generators() {
    std::vector<Generator> all;
    for (auto* family : {laplace_generators, spin_generators, lattice_generators,
                         hubbard_generators, topi_generators, matpde_generators,
                         irregular_generators, neighbour_generators, hexahedra_generators}) {
        const std::vector<Generator> members = family();
        all.insert(all.end(), members.begin(), members.end());
    }
    return all;
}

std::string_view name_in(const std::string& spec) {
    std::string_view rest = spec;
    rest.remove_prefix(is_generator(spec) ? prefix.size() : 0);
    return rest.substr(0, rest.find(','));
}

/// Throws InputError for control characters: messages repeat the specification and must print as
/// one line.
void refuse_control_characters(const std::string& spec) {
    const auto is_control = [](unsigned char letter) { return std::iscntrl(letter) != 0; };
    if (std::any_of(spec.begin(), spec.end(), is_control)) {
        std::string shown = spec;
        std::replace_if(shown.begin(), shown.end(), is_control, '?');
        throw InputError(shown + ": a control character (shown as ?) in the name of a matrix");
    }
}

Generator find_generator(const std::string& spec) {
    refuse_control_characters(spec);
    const std::vector<Generator> all = all_generators();
    const std::string_view name = name_in(spec);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Generator& generator) {
        return generator.info.name == name;
    });
    if (found == all.end()) {
        std::vector<std::string> names;
        names.reserve(all.size());
        for (const Generator& generator : all) {
            names.emplace_back(generator.info.name);
        }
        throw InputError(spec + ": there is no generator '" + std::string(name) + "'" +
                         suggest(name, names));
    }
    return *found;
}

/// The index of `text` among the words "a|b|c"; -1 if it is not one of them.
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
    if (key.kind == KeyKind::choice) {
        const std::int64_t number = number_of_word(key.choices, text);
        if (number < 0) {
            refuse(std::string("one of ") + key.choices + " is wanted");
        }
        parameters.set(key.name, number);
    } else if (key.kind == KeyKind::whole) {
        std::int64_t value = 0;
        const std::errc code = parse_whole(text, value);
        if (code == std::errc::result_out_of_range) {
            refuse("the number does not fit 64 bits");
        }
        if (code != std::errc() || value < key.least) {
            refuse("a whole number from " + std::to_string(key.least) + " on is wanted");
        }
        parameters.set(key.name, value);
    } else {
        double value = 0;
        if (parse_real(text, value) != std::errc()) {
            refuse("a number is wanted");
        }
        if (!std::isfinite(value)) {
            refuse("a finite number is wanted");
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
        if (item.empty()) {
            parameters.refuse("a comma without a key=value after it");
        }
        const auto equals = item.find('=');
        const std::string name(item.substr(0, equals));
        const bool known = std::any_of(keys.begin(), keys.end(),
                                       [&](const GeneratorKey& key) { return key.name == name; });
        if (!known) {
            std::vector<std::string> names;
            names.reserve(keys.size());
            for (const GeneratorKey& key : keys) {
                names.emplace_back(key.name);
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
            // The default may be the name of an earlier key, whose default may be another name.
            std::string_view value = key.default_value;
            for (;;) {
                const auto earlier = std::find_if(keys.begin(), keys.end(), [&](const auto& other) {
                    return other.name == value;
                });
                const auto text = earlier == keys.end() ? given.end() : given.find(earlier->name);
                if (earlier == keys.end() || text != given.end()) {
                    value = text == given.end() ? value : text->second;
                    break;
                }
                value = earlier->default_value;
            }
            set_value(parameters, key, value);
        } else {
            set_value(parameters, key, found->second);
        }
    }
    return parameters;
}

template <class T, class S>
CsrRows<T> in_scalar(CsrRows<S>&& rows, int threads) {
    if constexpr (std::is_same_v<T, S>) {
        return std::move(rows);
    } else {
        CsrRows<T> result;
        result.map = rows.map;
        result.global_cols = rows.global_cols;
        result.symmetry = rows.symmetry;
        result.row_start = std::move(rows.row_start);
        result.column = std::move(rows.column);
        result.value.resize(rows.value.size());
#pragma omp parallel for num_threads(threads) schedule(static)
        for (std::size_t k = 0; k < rows.value.size(); ++k) {
            const S value = rows.value[k];
            if constexpr (is_complex_v<S>) {
                result.value[k] =
                    T(static_cast<real_t<T>>(value.real()), static_cast<real_t<T>>(value.imag()));
            } else {
                result.value[k] = static_cast<real_t<T>>(value);
            }
        }
        return result;
    }
}

/// Builds rows with scalars T from a row function with scalars S.
template <class T, class S>
CsrRows<T> make_rows(const Comm& comm, const GeneratedMatrix& matrix,
                     const std::function<void(std::int64_t, RowEntries<S>&)>& make_row, int threads,
                     std::span<const double> weights) {
    CsrRows<S> rows = rows_from_callback<S>(comm, matrix.rows, matrix.symmetry, make_row,
                                            {Partition::by_rows, weights}, threads);
    CsrRows<T> result;
    comm.agree([&] { result = in_scalar<T>(std::move(rows), std::max(threads, 1)); });
    return result;
}

/// The memory that all rows of a matrix need, estimated from the number of entries in some rows.
template <class T>
struct Need {
    double bytes = 0;
    double entries_a_row = 0;
    static constexpr std::size_t entry = sizeof(std::int64_t) + sizeof(T);
};

template <class T>
Need<T> need_of(const GeneratedMatrix& matrix) {
    constexpr int samples = 64;
    constexpr double golden_ratio = 0.6180339887498949;
    double in_row = 0;
    const auto count = [&](const auto& make_row, auto entries) {
        for (int i = 0; i < samples; ++i) {
            entries.column.clear();
            entries.value.clear();
            const double at = std::fmod(i * golden_ratio, 1.0) * static_cast<double>(matrix.rows);
            make_row(std::min(static_cast<std::int64_t>(at), matrix.rows - 1), entries);
            in_row += static_cast<double>(entries.column.size()) / samples;
        }
    };
    if (matrix.make_complex_row) {
        count(matrix.make_complex_row, RowEntries<std::complex<double>>());
    } else {
        count(matrix.make_row, RowEntries<double>());
    }
    const double bytes = static_cast<double>(matrix.rows) *
                         (sizeof(std::int64_t) + in_row * static_cast<double>(Need<T>::entry));
    return {bytes, in_row};
}

/// "about 1234 MB on each of 2 ranks (1000 rows, 6.9 entries of 16 bytes in each)"
template <class T>
std::string describe_need(const GeneratedMatrix& matrix, int ranks) {
    const Need<T> need = need_of<T>(matrix);
    return fmt::format(
        "about {:.0f} MB on each of {} ({} rows, {:.1f} entries of {} bytes in each)",
        need.bytes / ranks * 1e-6, plural(ranks, "rank"), matrix.rows, need.entries_a_row,
        Need<T>::entry);
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

std::string generator_hint(const std::string& spec) {
    const std::string_view name = name_in(spec);
    const std::vector<Generator> all = all_generators();
    auto found = std::find_if(all.begin(), all.end(), [&](const Generator& generator) {
        return name == generator.info.name;
    });
    if (found == all.end()) {
        found = std::find_if(all.begin(), all.end(), [&](const Generator& generator) {
            return is_close(name, generator.info.name);
        });
    }
    return found == all.end() ? ""
                              : fmt::format("; for a generated matrix write gen:{}{}",
                                            found->info.name, spec.substr(name.size()));
}

template <class T>
CsrRows<T> generate(const Comm& comm, const std::string& spec, int threads,
                    std::span<const double> weights) {
    GeneratedMatrix matrix;
    comm.agree([&] {
        matrix = make_matrix(spec);
        if (matrix.make_complex_row && !is_complex_v<T>) {
            throw InputError(spec + ": the matrix is complex; real scalars cannot hold it");
        }
    });
    try {
        require_host_memory(comm, need_of<T>(matrix).bytes / comm.size(), "the rows take");
        if constexpr (is_complex_v<T>) {
            if (matrix.make_complex_row) {
                return make_rows<T>(comm, matrix, matrix.make_complex_row, threads, weights);
            }
        }
        return make_rows<T>(comm, matrix, matrix.make_row, threads, weights);
    } catch (const MemoryError& error) {
        if (!error.collective()) {
            throw;
        }
        throw_collective(ErrorKind::memory, spec + ": " + error.what() + "; the matrix takes " +
                                                describe_need<T>(matrix, comm.size()));
    }
}

std::optional<Mesh> generated_mesh(const std::string& spec) {
    if (!is_generator(spec)) {
        return std::nullopt;
    }
    const GeneratedMatrix matrix = make_matrix(spec);
    return matrix.mesh ? std::optional(matrix.mesh()) : std::nullopt;
}

std::optional<std::vector<double>> exact_eigenvalues(const std::string& spec, int k,
                                                     bool smallest) {
    const GeneratedMatrix matrix = make_matrix(spec);
    if (!matrix.eigenvalues) {
        return std::nullopt;
    }
    return matrix.eigenvalues(static_cast<int>(std::min<std::int64_t>(k, matrix.rows)), smallest);
}

#define QUIVER_INSTANTIATE(T) \
    template CsrRows<T> generate(const Comm&, const std::string&, int, std::span<const double>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver::apps
