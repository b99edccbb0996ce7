// SPDX-License-Identifier: BSD-3-Clause
// The cases that `quiver bench` times, their order, and their results.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "blockvec/scalar.hpp"
#include "blockvec/view.hpp"

namespace quiver::apps::bench {

class Kernel;

struct Shape {
    int m = 1;
    int n = 1;
    bool operator==(const Shape&) const = default;
};

/// What a row of the table measures.
struct Case {
    const Kernel* kernel = nullptr;
    Dtype scalar = Dtype::d;
    Shape shape;
    std::int64_t rows = 1;
    /// The gap between rows of the blocks, in elements: ld = width + ld_extra.
    int ld_extra = 0;
    /// For spmmv only: MATRIX as in other commands (empty: a Laplacian with `rows` rows), its
    /// number of nonzeros, and the rows per tile (SparseFormat::tile).
    std::string matrix = {};
    std::int64_t nonzeros = 0;
    int tile = 0;
    bool operator==(const Case&) const = default;
};

/// Bytes of an element, and real operations of one multiply-add.
double scalar_bytes(Dtype scalar);
double multiply_add_flops(Dtype scalar);

/// "1:8", "4", "1,2,4", "1:4,8,16:18": widths of square shapes in this order, without repetition.
/// Throws InputError for anything else and for widths outside 1 to 512.
std::vector<Shape> parse_widths(const std::string& text);
/// "4x8,64x2" (also "4 x 8"): shapes m x n in this order, m up to 2^20. Throws InputError as above.
std::vector<Shape> parse_shapes(const std::string& text);
/// "d", "s,d,c,z", "h,b". Throws InputError.
std::vector<Dtype> parse_scalars(const std::string& text);
/// "1000,1e6": row counts in this order. Throws InputError.
std::vector<std::int64_t> parse_rows(const std::string& text);
/// "0,1,3": gaps between rows in this order. Throws InputError.
std::vector<int> parse_ld_extra(const std::string& text);

/// `count` different shapes with m and n uniform in 1 to 64. The same seed gives the same shapes on
/// every platform.
std::vector<Shape> random_shapes(int count, std::uint64_t seed);
/// The shapes of block Gram-Schmidt: a basis of m = 20 .. 400 vectors and a block of n = 1 .. 16.
std::vector<Shape> gram_schmidt_shapes();

/// Sorts the most informative shapes first: widths that are powers of two from 8 outwards, then
/// sums of two powers of two, and so on. The results then cover the whole range of widths even if
/// the budget runs out. The width of m x n is the larger of m and n.
void order_by_meaning(std::vector<Shape>& shapes);

/// All scalars in the order of reports; h and b belong to kernels of mixed precision.
inline constexpr std::array all_scalars{Dtype::s, Dtype::d, Dtype::c, Dtype::z, Dtype::h, Dtype::b};

/// The outcome of a check.
enum class Outcome : std::uint8_t {
    passed,
    /// A result is further from the reference than rounding explains, or is not finite.
    incorrect,
    /// The library threw.
    failed
};

const char* to_string(Outcome outcome);

/// Names of this library with its default plans, and of its variants, which run the same kernels
/// with other plans (kernels/tuning.hpp).
inline constexpr const char* quiver_name = "quiver";
inline constexpr const char* model_name = "quiver (model)";
inline constexpr const char* atomics_name = "quiver (atomics)";
inline std::string tiling_name(const std::string& settings) {
    return std::string(quiver_name) + " (" + settings + ")";
}
/// The name of a variant that only figures compare (figures.hpp).
inline std::string figure_variant(const std::string& setting) {
    return std::string(quiver_name) + ": " + setting;
}
inline bool is_figure_variant(const std::string& library) {
    return library.starts_with(figure_variant(""));
}
inline bool is_this_library(const std::string& library) {
    return library.starts_with(quiver_name);
}

/// ", ld = width + 3"; empty without a gap.
std::string gap_text(int ld_extra);

/// Seconds of one call: median, quartiles and minimum.
struct Times {
    double median = 0;
    double lower_quartile = 0;
    double upper_quartile = 0;
    double least = 0;
};

/// Computes the quantiles of at least one sample by linear interpolation between the sorted
/// samples.
Times summarise(std::vector<double> seconds);

/// One row of the table.
struct Result {
    Case which;
    std::string library;
    Outcome outcome = Outcome::failed;
    /// Why it failed; empty otherwise.
    std::string message;
    /// The largest |computed - reference| over its bound; above 1 the result is incorrect.
    double error = 0;
    Times seconds;
    int samples = 0;
    /// Calls timed together as one sample.
    int calls_per_sample = 1;
    /// Copies of the operands, which the calls use in turn.
    std::int64_t sets = 1;
    double bytes = 0;
    double flops = 0;
    /// True if the free memory was too small for operands that no cache can hold.
    bool in_cache = false;
    /// The ceiling that limits this case: "read", "copy", "scale" or "flops"; empty without a
    /// ceiling.
    std::string ceiling;
    /// The time at that ceiling over the median, in percent; 0 without a ceiling.
    double roofline_percent = 0;
    /// The time of this rival or variant over ours; 0 for our own results and without a
    /// measurement.
    double ratio = 0;
    /// A rival whose call took so long that it was timed once; its ratio is excluded from the mean.
    bool timed_once = false;
    /// Joules of a call; 0 if they were not measured.
    double joules = 0;
    /// The seconds that a call on a short block may take; 0 for other blocks.
    double limit_seconds = 0;
    /// The run of a resumed session that measured this result.
    int run = 0;

    bool ours() const { return library == quiver_name; }
    bool rival() const { return !is_this_library(library); }
    bool measured() const { return outcome != Outcome::failed; }
    bool has_roofline() const { return roofline_percent > 0; }
};

}  // namespace quiver::apps::bench
