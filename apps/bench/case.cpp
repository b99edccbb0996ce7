// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/case.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "apps/bench/stencil.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {
namespace {

constexpr int most_columns = 512;

/// The text between commas, without blanks.
std::vector<std::string> split(const char* option, const std::string& text) {
    std::vector<std::string> words(1);
    for (const char letter : text) {
        if (letter == ',') {
            words.emplace_back();
        } else if (letter != ' ') {
            words.back() += letter;
        }
    }
    for (const std::string& word : words) {
        if (word.empty()) {
            throw InputError(fmt::format("{} \"{}\": an entry of the list is empty", option, text));
        }
    }
    return words;
}

int parse_width(const char* option, std::string_view word) {
    int width = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), width);
    if (error != std::errc() || end != word.data() + word.size() || width < 1 ||
        width > most_columns) {
        throw InputError(
            fmt::format("{}: \"{}\" is not a width from 1 to {}", option, word, most_columns));
    }
    return width;
}

template <class V>
void add_once(std::vector<V>& list, const V& value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) {
        list.push_back(value);
    }
}

double scalar_bytes(Dtype scalar) {
    return visit_dtype(scalar, []<class T>() { return static_cast<double>(sizeof(T)); });
}

/// Bytes of the vectors per row, in scalars.
double scalars_a_row(const Case& c) {
    switch (c.kernel) {
        case Kernel::axpby:
            return 3.0 * c.shape.n;
        case Kernel::dots:
        case Kernel::spmmv:
            return 2.0 * c.shape.n;
        default:
            return c.shape.m + c.shape.n;
    }
}

}  // namespace

const char* to_string(Kernel kernel) {
    constexpr const char* names[] = {"tsmttsm", "tsmm", "axpby", "dots", "spmmv"};
    return names[static_cast<int>(kernel)];
}

std::optional<Kernel> kernel_of(std::string_view name) {
    for (const Kernel kernel : all_kernels) {
        if (name == to_string(kernel)) {
            return kernel;
        }
    }
    return std::nullopt;
}

const char* to_string(Outcome outcome) {
    constexpr const char* names[] = {"passed", "incorrect", "failed"};
    return names[static_cast<int>(outcome)];
}

double minimum_bytes(const Case& c) {
    const double scalar = scalar_bytes(c.scalar);
    const double vectors = scalar * static_cast<double>(c.rows) * scalars_a_row(c);
    return c.kernel == Kernel::spmmv
               ? vectors + static_cast<double>(Stencil(c.rows).nonzeros()) * (scalar + 4)
               : vectors;
}

double flops(const Case& c) {
    const double multiply_add =
        visit_dtype(c.scalar, []<class T>() { return multiply_add_flops_v<T>; });
    const auto rows = static_cast<double>(c.rows);
    switch (c.kernel) {
        case Kernel::axpby:
            return 1.5 * multiply_add * rows * c.shape.n;
        case Kernel::dots:
            return multiply_add * rows * c.shape.n;
        case Kernel::spmmv:
            return multiply_add * static_cast<double>(Stencil(c.rows).nonzeros()) * c.shape.n;
        default:
            return multiply_add * rows * c.shape.m * c.shape.n;
    }
}

std::int64_t rows_for(const Case& c, double bytes) {
    const double scalar = scalar_bytes(c.scalar);
    const double matrix = c.kernel == Kernel::spmmv ? 7 * (scalar + 4) : 0;
    // axpby reads and writes the same Y.
    const double vectors =
        scalar * (c.kernel == Kernel::axpby ? 2.0 * c.shape.n : scalars_a_row(c));
    const auto rows = static_cast<std::int64_t>(bytes / (vectors + matrix));
    return std::max(rows, std::int64_t{1});
}

std::vector<Shape> parse_widths(const std::string& text) {
    constexpr const char* option = "--widths";
    std::vector<Shape> shapes;
    for (const std::string& word : split(option, text)) {
        const std::size_t colon = word.find(':');
        const int first = parse_width(option, std::string_view(word).substr(0, colon));
        const int last = colon == std::string::npos
                             ? first
                             : parse_width(option, std::string_view(word).substr(colon + 1));
        if (last < first) {
            throw InputError(fmt::format("{}: {} is an empty range", option, word));
        }
        for (int width = first; width <= last; ++width) {
            add_once(shapes, {width, width});
        }
    }
    return shapes;
}

std::vector<Shape> parse_shapes(const std::string& text) {
    constexpr const char* option = "--shapes";
    std::vector<Shape> shapes;
    for (const std::string& word : split(option, text)) {
        const std::size_t cross = word.find('x');
        if (cross == std::string::npos) {
            throw InputError(fmt::format("{}: \"{}\" is not of the form MxN", option, word));
        }
        add_once(shapes, {parse_width(option, std::string_view(word).substr(0, cross)),
                          parse_width(option, std::string_view(word).substr(cross + 1))});
    }
    return shapes;
}

std::vector<Dtype> parse_scalars(const std::string& text) {
    std::vector<Dtype> scalars;
    for (const std::string& word : split("--scalar", text)) {
        const auto known = {Dtype::s, Dtype::d, Dtype::c, Dtype::z};
        const auto found = std::find_if(known.begin(), known.end(), [&](Dtype dtype) {
            return word == std::string(1, letter(dtype));
        });
        if (found == known.end()) {
            throw InputError(fmt::format("--scalar: \"{}\" is none of s, d, c, z", word));
        }
        add_once(scalars, *found);
    }
    return scalars;
}

void order_by_meaning(std::vector<Shape>& shapes) {
    const auto key = [](const Shape& shape) {
        const auto width = static_cast<unsigned>(std::max(shape.m, shape.n));
        return std::pair(std::popcount(width), std::abs(std::log2(width) - 3));
    };
    std::stable_sort(shapes.begin(), shapes.end(),
                     [&](const Shape& a, const Shape& b) { return key(a) < key(b); });
}

Times summarise(std::vector<double> seconds) {
    std::sort(seconds.begin(), seconds.end());
    const auto quantile = [&](double fraction) {
        const double position = fraction * static_cast<double>(seconds.size() - 1);
        const auto below = static_cast<std::size_t>(position);
        const std::size_t above = std::min(below + 1, seconds.size() - 1);
        return std::lerp(seconds[below], seconds[above], position - static_cast<double>(below));
    };
    return {quantile(0.5), quantile(0.25), quantile(0.75), seconds.front()};
}

}  // namespace quiver::apps::bench
