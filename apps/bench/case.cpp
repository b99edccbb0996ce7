// SPDX-License-Identifier: BSD-3-Clause
#include "apps/bench/case.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "apps/bench/words.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {
namespace {

constexpr int most_columns = 512;
/// The largest m of a shape m x n; kernels may have smaller limits.
constexpr int most_depth = 1 << 20;

int parse_width(const char* option, std::string_view word) {
    return static_cast<int>(parse_number(option, word, 1, most_columns));
}

}  // namespace

const char* to_string(Outcome outcome) {
    constexpr const char* names[] = {"passed", "incorrect", "failed"};
    return names[static_cast<int>(outcome)];
}

std::string gap_text(int ld_extra) {
    return ld_extra > 0 ? fmt::format(", ld = width + {}", ld_extra) : "";
}

double scalar_bytes(Dtype scalar) {
    if (scalar == Dtype::h || scalar == Dtype::b) {
        return sizeof(half_t);
    }
    return visit_dtype(scalar, []<class T>() { return static_cast<double>(sizeof(T)); });
}

double multiply_add_flops(Dtype scalar) {
    return visit_dtype(scalar, []<class T>() -> double { return multiply_add_flops_v<T>; });
}

std::vector<Shape> parse_widths(const std::string& text) {
    constexpr const char* option = "--widths";
    std::vector<Shape> shapes;
    for (const std::string& word : split_list(option, text)) {
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
    for (const std::string& word : split_list(option, text)) {
        const std::size_t cross = word.find('x');
        if (cross == std::string::npos) {
            throw InputError(fmt::format("{}: \"{}\" is not of the form MxN", option, word));
        }
        add_once(shapes, {static_cast<int>(parse_number(
                              option, std::string_view(word).substr(0, cross), 1, most_depth)),
                          parse_width(option, std::string_view(word).substr(cross + 1))});
    }
    return shapes;
}

std::vector<Dtype> parse_scalars(const std::string& text) {
    std::vector<Dtype> scalars;
    for (const std::string& word : split_list("--scalar", text)) {
        const auto* const found =
            std::find_if(all_scalars.begin(), all_scalars.end(),
                         [&](Dtype dtype) { return word == std::string(1, letter(dtype)); });
        if (found == all_scalars.end()) {
            throw InputError(fmt::format("--scalar: \"{}\" is not one of s, d, c, z, h, b", word));
        }
        add_once(scalars, *found);
    }
    return scalars;
}

std::vector<std::int64_t> parse_rows(const std::string& text) {
    constexpr std::int64_t most_rows = std::int64_t{1} << 40;
    std::vector<std::int64_t> rows;
    for (const std::string& word : split_list("--rows", text)) {
        add_once(rows, parse_number("--rows", word, 1, most_rows));
    }
    return rows;
}

std::vector<int> parse_ld_extra(const std::string& text) {
    std::vector<int> gaps;
    for (const std::string& word : split_list("--ld-extra", text)) {
        add_once(gaps, static_cast<int>(parse_number("--ld-extra", word, 0, most_columns)));
    }
    return gaps;
}

std::vector<Shape> random_shapes(int count, std::uint64_t seed) {
    std::mt19937_64 generator(seed);
    // No std::uniform_int_distribution: its numbers differ between standard libraries.
    const auto width = [&] { return static_cast<int>(generator() % 64) + 1; };
    std::vector<Shape> shapes;
    while (std::ssize(shapes) < count) {
        const int m = width();
        add_once(shapes, {m, width()});
    }
    return shapes;
}

std::vector<Shape> gram_schmidt_shapes() {
    std::vector<Shape> shapes;
    for (const int m : {20, 40, 80, 120, 200, 300, 400}) {
        for (const int n : {1, 2, 4, 8, 16}) {
            shapes.push_back({m, n});
        }
    }
    return shapes;
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
