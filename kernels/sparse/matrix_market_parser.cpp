// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sparse/matrix_market_parser.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>
#include <string_view>

#include "blockvec/number_text.hpp"
#include "blockvec/scalar.hpp"
#include "blockvec/scalar_list.hpp"

namespace quiver {
namespace {

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

const char* skip_blanks(const char* at, const char* end) {
    while (at != end && is_blank(*at)) {
        ++at;
    }
    return at;
}

const char* token_end(const char* at, const char* end) {
    while (at != end && !is_blank(*at) && *at != '\n') {
        ++at;
    }
    return at;
}

/// The token that starts here, shortened and made printable for an error message.
std::string quoted_token(const char* at, const char* end) {
    constexpr std::ptrdiff_t longest = 40;
    const char* stop = token_end(at, end);
    if (at == stop) {
        return "the end of the line";
    }
    std::string token(at, std::min(stop, at + longest));
    std::replace_if(
        token.begin(), token.end(), [](unsigned char c) { return std::isprint(c) == 0; }, '?');
    return "'" + token + (stop - at > longest ? "...'" : "'");
}

bool ends_token(const char* at, const char* end) {
    return at == end || is_blank(*at) || *at == '\n';
}

/// The start of the number after an optional '+'.
const char* number_start(const char* at, const char* end) {
    return end - without_plus({at, static_cast<std::size_t>(end - at)}).size();
}

const char* parse_integer(const char* at, const char* end, const char* what, std::int64_t& value) {
    at = skip_blanks(at, end);
    const auto [stop, code] = std::from_chars(number_start(at, end), end, value);
    if (code == std::errc::result_out_of_range) {
        throw InputError(std::string(what) + ": " + quoted_token(at, end) + " is too large");
    }
    if (code != std::errc() || !ends_token(stop, end)) {
        throw InputError(std::string(what) + ": expected an integer, found " +
                         quoted_token(at, end));
    }
    return stop;
}

/// Parses a finite number and rounds it to R; if `whole`, it must be an integer.
template <class R>
const char* parse_finite(const char* at, const char* end, bool whole, R& value) {
    at = skip_blanks(at, end);
    double wide = 0;
    auto [stop, code] = std::from_chars(number_start(at, end), end, wide);
    if (code != std::errc() || !ends_token(stop, end)) {
        // from_chars rejects Fortran exponents and numbers out of range.
        stop = token_end(at, end);
        if (parse_real({at, static_cast<std::size_t>(stop - at)}, wide) != std::errc()) {
            throw InputError("expected a number, found " + quoted_token(at, end));
        }
    }
    value = static_cast<R>(wide);
    if (!std::isfinite(value)) {
        throw InputError(
            "the value " + quoted_token(at, end) +
            (std::isfinite(wide) ? " is too large for single precision" : " is not finite"));
    }
    if (whole && wide != std::trunc(wide)) {
        throw InputError("an integer file holds " + quoted_token(at, end));
    }
    return stop;
}

const char* after_line(const char* at, const char* end) {
    const void* newline =
        at == end ? nullptr : std::memchr(at, '\n', static_cast<std::size_t>(end - at));
    return newline == nullptr ? end : static_cast<const char*>(newline) + 1;
}

std::string lower(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

std::vector<std::string> words_of(const std::string& line) {
    std::vector<std::string> words;
    const char* at = line.data();
    const char* end = at + line.size();
    while ((at = skip_blanks(at, end)) != end) {
        const char* stop = token_end(at, end);
        words.push_back(lower({at, static_cast<std::size_t>(stop - at)}));
        at = stop;
    }
    return words;
}

[[noreturn]] void throw_unknown(const char* what, const std::string& word, const char* known) {
    throw InputError(std::string("the ") + what + " " +
                     quoted_token(word.data(), word.data() + word.size()) +
                     " is unknown; known are " + known);
}

/// A hint about the encoding of a line that another system wrote; empty if there is none.
std::string encoding_hint(std::string_view line) {
    if (line.starts_with("\xEF\xBB\xBF")) {
        return "; the text starts with a UTF-8 byte order mark; save it without one";
    }
    if (line.starts_with("\xFF\xFE") || line.starts_with("\xFE\xFF")) {
        return "; the text is UTF-16, save it as ASCII";
    }
    const auto lone = line.find('\r');
    if (lone < line.find_last_not_of(" \t\r") && lone != std::string_view::npos) {
        return "; its lines end with CR only; convert them to LF (tr '\\r' '\\n')";
    }
    return "";
}

void parse_banner(const std::string& line, MatrixMarketHeader& header) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty() || words[0] != "%%matrixmarket") {
        throw InputError(
            "not a Matrix Market file: the first line does not start with "
            "'%%MatrixMarket'");
    }
    if (words.size() != 5) {
        throw InputError("the first line has " + std::to_string(words.size()) +
                         " words; expected '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'");
    }
    if (words[1] != "matrix") {
        throw_unknown("object", words[1], "matrix");
    }
    if (words[2] == "coordinate") {
        header.format = MatrixMarketHeader::Format::coordinate;
    } else if (words[2] == "array") {
        header.format = MatrixMarketHeader::Format::array;
    } else {
        throw_unknown("format", words[2], "coordinate and array");
    }
    using Field = MatrixMarketHeader::Field;
    if (words[3] == "real" || words[3] == "double") {
        header.field = Field::real;
    } else if (words[3] == "integer" || words[3] == "unsigned-integer") {
        header.field = Field::integer;
    } else if (words[3] == "complex") {
        header.field = Field::complex;
    } else if (words[3] == "pattern") {
        header.field = Field::pattern;
    } else {
        throw_unknown("field", words[3], "real, integer, complex and pattern");
    }
    if (words[4] == "general") {
        header.symmetry = Symmetry::general;
    } else if (words[4] == "symmetric") {
        header.symmetry = Symmetry::symmetric;
    } else if (words[4] == "skew-symmetric") {
        header.symmetry = Symmetry::skew_symmetric;
    } else if (words[4] == "hermitian") {
        header.symmetry = Symmetry::hermitian;
    } else {
        throw_unknown("symmetry", words[4], "general, symmetric, skew-symmetric and hermitian");
    }
    const bool impossible =
        (header.symmetry == Symmetry::hermitian && header.field != Field::complex) ||
        (header.symmetry == Symmetry::skew_symmetric && header.field == Field::pattern) ||
        (header.format == MatrixMarketHeader::Format::array && header.field == Field::pattern);
    if (impossible) {
        throw InputError("the format has no " + words[4] + " matrix in " + words[2] +
                         " format with a " + words[3] + " field");
    }
}

void parse_size_line(const std::string& line, MatrixMarketHeader& header) {
    const bool array = header.format == MatrixMarketHeader::Format::array;
    const char* end = line.data() + line.size();
    const char* at = parse_integer(line.data(), end, "number of rows", header.rows);
    at = parse_integer(at, end, "number of columns", header.cols);
    if (!array) {
        at = parse_integer(at, end, "number of entries", header.entries);
    }
    at = skip_blanks(at, end);
    if (at != end) {
        throw InputError("unexpected text after the numbers of the size line: " +
                         quoted_token(at, end));
    }
    if (header.rows < 0 || header.cols < 0 || header.entries < 0) {
        throw InputError("the size line has a negative number");
    }
    if (header.symmetry != Symmetry::general && header.rows != header.cols) {
        throw InputError(std::string("a ") + to_string(header.symmetry) + " matrix of " +
                         std::to_string(header.rows) + " rows and " + std::to_string(header.cols) +
                         " columns");
    }
    if (array) {
        std::int64_t elements = 0;
        if (__builtin_mul_overflow(header.rows, header.cols, &elements)) {
            throw InputError("the size overflows: " + std::to_string(header.rows) + " x " +
                             std::to_string(header.cols) + " elements");
        }
        header.entries = array_length(header);
    }
}

}  // namespace

MatrixMarketLayout parse_header(const std::string& path, InflatedText& text) {
    MatrixMarketLayout layout;
    std::int64_t line_number = 1;
    std::string line;
    try {
        if (!text.next_line(line)) {
            throw InputError("the file is empty");
        }
        parse_banner(line, layout.header);
        while (true) {
            ++line_number;
            if (!text.next_line(line)) {
                throw InputError("the file ends before the size line");
            }
            const auto first = line.find_first_not_of(" \t\r");
            if (first != std::string::npos && line[first] != '%') {
                break;
            }
        }
        parse_size_line(line, layout.header);
    } catch (const InputError& error) {
        throw InputError(path, line_number, error.what() + encoding_hint(line));
    }
    layout.gzip = text.is_gzip();
    layout.data_offset = text.position();
    layout.data_line = line_number + 1;
    return layout;
}

namespace {

/// Number of values before column j of the listed triangle; halving before multiplying avoids
/// overflow.
std::int64_t listed_before(const MatrixMarketHeader& header, std::int64_t j) {
    if (header.symmetry == Symmetry::general) {
        return header.rows * j;
    }
    const std::int64_t first =
        header.symmetry == Symmetry::skew_symmetric ? header.rows - 1 : header.rows;
    // The columns have first, first - 1, ... values: j first - j (j - 1) / 2 in total.
    return j * first - (j % 2 == 0 ? j / 2 * (j - 1) : (j - 1) / 2 * j);
}

}  // namespace

std::int64_t array_length(const MatrixMarketHeader& header) {
    return listed_before(header, header.cols);
}

std::pair<std::int64_t, std::int64_t> array_place(const MatrixMarketHeader& header,
                                                  std::int64_t ordinal) {
    std::int64_t low = 0;  // becomes the last column with listed_before <= ordinal
    std::int64_t high = header.cols;
    while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (listed_before(header, middle) <= ordinal ? low : high) = middle;
    }
    std::int64_t first_row = 0;
    if (header.symmetry != Symmetry::general) {
        first_row = header.symmetry == Symmetry::skew_symmetric ? low + 1 : low;
    }
    return {first_row + ordinal - listed_before(header, low), low};
}

std::int64_t TextPiece::line_of(std::int64_t entry) const {
    const auto after =
        std::upper_bound(skips.begin(), skips.end(), entry,
                         [](std::int64_t value, const auto& skip) { return value < skip.first; });
    return entry + (after == skips.begin() ? 0 : std::prev(after)->second);
}

template <class T>
void append_expanded(std::vector<Entry<T>>& entries, Symmetry symmetry, const Entry<T>& entry) {
    entries.push_back(entry);
    if (symmetry == Symmetry::general || entry.row == entry.column) {
        return;
    }
    T mirrored = entry.value;
    if (symmetry == Symmetry::skew_symmetric) {
        mirrored = -entry.value;
    } else if (symmetry == Symmetry::hermitian) {
        mirrored = conjugate(entry.value);
    }
    entries.push_back({entry.column, entry.row, mirrored});
}

template <class T>
void EntryParser<T>::begin_piece(std::int64_t index) noexcept {
    try {
        pieces_.emplace_back().index = index;
    } catch (const std::bad_alloc&) {
        if (failure_.piece == TextFailure::nowhere) {
            failure_.piece = index;
            failure_.kind = ErrorKind::memory;
        }
    }
}

template <class T>
void EntryParser<T>::fail(ErrorKind kind, const std::string& text) noexcept {
    if (failure_.piece != TextFailure::nowhere) {
        return;
    }
    failure_.piece = pieces_.empty() ? 0 : pieces_.back().index;
    failure_.line = pieces_.empty() ? 0 : pieces_.back().lines;
    failure_.kind = kind;
    try {
        failure_.text = text;
    } catch (const std::bad_alloc&) {
        failure_.kind = ErrorKind::memory;
    }
}

template <class T>
void EntryParser<T>::parse(const char* text, std::size_t bytes) noexcept {
    const char* end = text + bytes;
    try {
        while (text != end && failure_.piece == TextFailure::nowhere) {
            text = parse_line(text, end);
            ++pieces_.back().lines;
        }
    } catch (const std::bad_alloc&) {
        fail(ErrorKind::memory, "out of host memory for the entries of the matrix");
    } catch (const Error& error) {
        fail(error.kind(), error.what());
    }
}

template <class T>
const char* EntryParser<T>::parse_line(const char* at, const char* end) {
    TextPiece& piece = pieces_.back();
    const char* line = at;
    at = skip_blanks(at, end);
    if (at == end || *at == '\n' || *at == '%') {
        const std::int64_t before = piece.skips.empty() ? 0 : piece.skips.back().second;
        if (piece.skips.empty() || piece.skips.back().first != piece.entries) {
            piece.skips.emplace_back(piece.entries, before + 1);
        } else {
            ++piece.skips.back().second;
        }
        return after_line(at, end);
    }
    const bool array = header_.format == MatrixMarketHeader::Format::array;
    std::int64_t row = 0;
    std::int64_t column = 0;
    if (!array) {
        at = parse_integer(at, end, "row index", row);
        at = parse_integer(at, end, "column index", column);
    }
    real_t<T> real = 1;
    real_t<T> imaginary = 0;
    if (header_.field != MatrixMarketHeader::Field::pattern) {
        at = parse_finite(at, end, header_.field == MatrixMarketHeader::Field::integer, real);
    }
    if (header_.is_complex()) {
        at = parse_finite(at, end, false, imaginary);
    }
    at = skip_blanks(at, end);
    if (at != end && *at != '\n') {
        throw InputError("unexpected text after the entry: " + quoted_token(at, end) +
                         encoding_hint({line, static_cast<std::size_t>(at + 1 - line)}));
    }
    T value;
    if constexpr (is_complex_v<T>) {
        value = T(real, imaginary);
    } else {
        value = real;
    }
    if (!array) {
        add_coordinate(row, column, value);
    } else if (value != T(0)) {
        entries_.push_back({piece.entries, static_cast<std::int64_t>(pieces_.size()) - 1, value});
    }
    ++piece.entries;
    return at == end ? end : at + 1;
}

template <class T>
void EntryParser<T>::add_coordinate(std::int64_t row, std::int64_t column, T value) {
    if (row < 1 || row > header_.rows) {
        throw InputError("row index " + std::to_string(row) + " is outside 1 .. " +
                         std::to_string(header_.rows));
    }
    if (column < 1 || column > header_.cols) {
        throw InputError("column index " + std::to_string(column) + " is outside 1 .. " +
                         std::to_string(header_.cols));
    }
    if (header_.symmetry != Symmetry::general) {
        const auto where = [&] {
            return "entry (" + std::to_string(row) + ", " + std::to_string(column) + ") of a " +
                   to_string(header_.symmetry) + " file";
        };
        if (column > row) {
            throw InputError(where() + " lies in the upper triangle; only the lower one is stored");
        }
        if (column == row && header_.symmetry == Symmetry::skew_symmetric) {
            throw InputError(where() + " lies on the diagonal, which is zero and not stored");
        }
        if constexpr (is_complex_v<T>) {
            if (column == row && header_.symmetry == Symmetry::hermitian && value.imag() != 0) {
                throw InputError(where() + " lies on the diagonal and is not real");
            }
        }
    }
    append_expanded(entries_, header_.symmetry, {row - 1, column - 1, value});
}

#define QUIVER_INSTANTIATE(T)                                                         \
    template void append_expanded(std::vector<Entry<T>>&, Symmetry, const Entry<T>&); \
    template class EntryParser<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
