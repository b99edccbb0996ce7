// SPDX-License-Identifier: BSD-3-Clause
// Arguments, cost and leaves of Y = H X for a Hamiltonian of spins or fermions whose entries are
// computed from the bits of the basis states.
#pragma once

#include <cstdint>

#include "kernels/operations/cost.hpp"

#ifdef __CUDACC_RTC__
#define QUIVER_STATE_INLINE __forceinline__
#else
/// Inlined into the copy of the kernel for each instruction set, so that all use its popcount.
#define QUIVER_STATE_INLINE [[gnu::always_inline]] inline
#endif

namespace quiver {

QUIVER_STATE_INLINE int count_ones(std::uint64_t word) {
#ifdef __CUDACC_RTC__
    return __popcll(word);
#else
    return __builtin_popcountll(word);
#endif
}
QUIVER_STATE_INLINE bool is_odd(std::uint64_t word) {
    return (count_ones(word) & 1) != 0;
}
/// The position of the lowest one; word != 0.
QUIVER_STATE_INLINE int lowest_one(std::uint64_t word) {
    return count_ones((word & (~word + 1)) - 1);
}
QUIVER_STATE_INLINE std::uint64_t low_ones(int bits) {
    return (std::uint64_t{1} << bits) - 1;
}

/// The row length of the table of binomials.
constexpr int binomial_stride = 64;

/// The ascending list of all words of `bits` bits, or of those with `ones` ones. The combinatorial
/// number system converts between a word and its rank. Up to 40 bits two tables give the rank.
struct WordList {
    int bits;
    int ones;  // -1: all words
    std::int64_t count;
    const std::int64_t* binomials;  // C(n, k) at n binomial_stride + k
    int low_bits;
    const std::int64_t* high;  // the rank of the first word with these high bits; null: no tables
    const std::int32_t* low;   // the rank among the words with the same high bits

    QUIVER_STATE_INLINE std::int64_t choose(int n, int k) const {
        return binomials[n * binomial_stride + k];
    }
    QUIVER_STATE_INLINE std::uint64_t word(std::int64_t rank) const {
        if (ones < 0) {
            return static_cast<std::uint64_t>(rank);
        }
        std::uint64_t word = 0;
        int left = ones;
        for (int bit = bits - 1; bit >= 0 && left > 0; --bit) {
            if (rank >= choose(bit, left)) {
                rank -= choose(bit, left);
                --left;
                word |= std::uint64_t{1} << bit;
            }
        }
        return word;
    }
    QUIVER_STATE_INLINE std::int64_t rank(std::uint64_t word) const {
        if (ones < 0) {
            return static_cast<std::int64_t>(word);
        }
        if (high != nullptr) {
            return high[word >> low_bits] + low[word & low_ones(low_bits)];
        }
        std::int64_t rank = 0;
        for (int k = 1; word != 0; ++k) {
            rank += choose(lowest_one(word), k);
            word &= word - 1;
        }
        return rank;
    }
    QUIVER_STATE_INLINE std::uint64_t next(std::uint64_t word) const {
        if (ones < 0) {
            return word + 1;
        }
        if (word == 0) {
            return word;
        }
        const std::uint64_t ripple = word + (word & (~word + 1));
        return ripple | ((ripple ^ word) >> (2 + lowest_one(word)));
    }
};

/// The smallest word among the images of a state under the symmetry group, and the element that
/// leads to it: T^a P^b Z^c has the number a + translations (b + c (P is used ? 2 : 1)).
struct SmallestImage {
    std::uint64_t word;
    int element;
    bool negative;  // the image is minus the state of the word
};

/// The basis states. Without symmetries row r is the pair of words (high, low) with r = rank of
/// high * low.count + rank of low; the state has the bits of `high` above those of `low`. With
/// symmetries row r is the combination of the images of representatives[r].
struct StateSpace {
    WordList low, high;
    std::int64_t rows;
    int sites;    // bits of a species; translations and reflections act on each species
    int species;  // 1, or 2: the low and the high half of the bits
    bool fermions;
    int translations;  // 1: none
    bool reflects, inverts;
    const std::uint64_t* representatives;  // ascending; null without symmetries
    const unsigned char* stabiliser;       // the number of elements that map it to itself
    const std::int64_t* bucket;            // the first representative with these leading bits
    int bucket_shift;

    QUIVER_STATE_INLINE bool symmetric() const { return representatives != nullptr; }
    QUIVER_STATE_INLINE int bits() const { return low.bits + high.bits; }
    QUIVER_STATE_INLINE std::int64_t rank(std::uint64_t word) const {
        const std::int64_t below = low.rank(word & low_ones(low.bits));
        return high.bits == 0 ? below : high.rank(word >> low.bits) * low.count + below;
    }
    QUIVER_STATE_INLINE std::uint64_t plain_word(std::int64_t rank) const {
        return high.bits == 0
                   ? low.word(rank)
                   : high.word(rank / low.count) << low.bits | low.word(rank % low.count);
    }
    QUIVER_STATE_INLINE std::uint64_t word(std::int64_t row) const {
        return symmetric() ? representatives[row] : plain_word(row);
    }
    /// The word of the plain row after `row`, whose word is `word`.
    QUIVER_STATE_INLINE std::uint64_t next(std::int64_t row, std::uint64_t word) const {
        if (high.bits == 0) {
            return low.next(word);
        }
        if ((row + 1) % low.count != 0) {
            const std::uint64_t mask = low_ones(low.bits);
            return (word & ~mask) | low.next(word & mask);
        }
        return high.next(word >> low.bits) << low.bits | low.word(0);
    }

    QUIVER_STATE_INLINE std::uint64_t half(std::uint64_t word, int which) const {
        return word >> which * sites & low_ones(sites);
    }
    QUIVER_STATE_INLINE std::uint64_t swapped(std::uint64_t word) const {
        return half(word, 0) << sites | half(word, 1);
    }
    /// Reverses the sites; *negative changes with the sign of the state.
    QUIVER_STATE_INLINE std::uint64_t reflected(std::uint64_t word, bool* negative) const {
        std::uint64_t all = 0;
        for (int s = 0; s < species; ++s) {
            const std::uint64_t part = half(word, s);
            for (int i = 0; i < sites; ++i) {
                all |= (part >> i & 1) << (s * sites + sites - 1 - i);
            }
            const int n = count_ones(part);
            *negative ^= fermions && (n * (n - 1) / 2 & 1) != 0;
        }
        return all;
    }
    /// Spins: flips all; fermions: exchanges up and down.
    QUIVER_STATE_INLINE std::uint64_t inverted(std::uint64_t word, bool* negative) const {
        if (!fermions) {
            return ~word & low_ones(sites);
        }
        *negative ^= is_odd(half(word, 0)) && is_odd(half(word, 1));
        return swapped(word);
    }
    /// Calls use(image) for all elements of the group until use returns false.
    template <class Use>
    QUIVER_STATE_INLINE void for_each_image(std::uint64_t word, const Use& use) const {
        const std::uint64_t top = std::uint64_t{1} << (sites - 1);
        const std::uint64_t tops = species == 1 ? top : top | top << sites;
        for (int c = 0; c < (inverts ? 2 : 1); ++c) {
            for (int b = 0; b < (reflects ? 2 : 1); ++b) {
                SmallestImage image{word, translations * (b + (reflects ? 2 : 1) * c), false};
                if (c == 1) {
                    image.word = inverted(image.word, &image.negative);
                }
                if (b == 1) {
                    image.word = reflected(image.word, &image.negative);
                }
                // A fermion that passes the boundary passes all others of its species.
                std::uint64_t passes_odd = 0;
                for (int s = 0; s < species && fermions; ++s) {
                    passes_odd |= is_odd(half(image.word, s)) ? 0 : top << s * sites;
                }
                for (int a = 0; a < translations; ++a, ++image.element) {
                    if (!use(image)) {
                        return;
                    }
                    const std::uint64_t wrapped = image.word & tops;
                    image.negative ^= is_odd(wrapped & passes_odd);
                    image.word = (image.word ^ wrapped) << 1 | wrapped >> (sites - 1);
                }
            }
        }
    }
    QUIVER_STATE_INLINE SmallestImage smallest_image(std::uint64_t word) const {
        SmallestImage best{word, 0, false};
        for_each_image(word, [&](const SmallestImage& image) {
            if (image.word < best.word) {
                best = image;
            }
            return true;
        });
        return best;
    }
    /// The row of a representative; -1 if the word is not a representative of this sector.
    QUIVER_STATE_INLINE std::int64_t row_of(std::uint64_t word) const {
        std::int64_t first = bucket[word >> bucket_shift];
        std::int64_t count = bucket[(word >> bucket_shift) + 1] - first;
        while (count > 0) {
            const std::int64_t half_count = count / 2;
            const bool above = representatives[first + half_count] < word;
            first = above ? first + half_count + 1 : first;
            count = above ? count - half_count - 1 : half_count;
        }
        return first < rows && representatives[first] == word ? first : -1;
    }
};

/// The sum over the ones i of `mask` of coefficient (-1)^(s_i + s_(i + shift)); shift 0: of
/// coefficient (-1)^(s_i).
template <class T>
struct DiagonalTerm {
    std::uint64_t mask;
    int shift;
    int count;  // ones of the mask
    T coefficient;
};

/// coefficient (-1)^(ones of s & sign)
template <class T>
struct SignTerm {
    std::uint64_t sign;
    T coefficient;
};

/// For each one i of `mask`: exchanges bits i and i + shift if they differ.
template <class T>
struct ExchangeTerm {
    std::uint64_t mask;
    int shift;
    T coefficient;
};

/// <s| H |s ^ flip> = coefficient (-1)^(ones of s & sign) if s & flip is `value` or `other`.
template <class T>
struct FlipTerm {
    std::uint64_t flip, value, other, sign;
    T coefficient;
};

/// Terms of one kind, in the place of the blocks.
template <class V>
struct TermList {
    const V* data;
    int count;
};

/// A Hamiltonian as a sum of terms of these kinds.
template <class T>
struct BitTerms {
    T constant;
    TermList<DiagonalTerm<T>> diagonal;
    TermList<SignTerm<T>> signs;
    TermList<ExchangeTerm<T>> exchanges;
    TermList<FlipTerm<T>> flips;
};

/// The positions of the rows of other ranks in the halo: bit r of `bits` is set if row r is in it,
/// and before[w] counts the ones of all words before word w.
struct HaloRows {
    const std::uint64_t* bits;
    const std::int64_t* before;

    QUIVER_STATE_INLINE std::int64_t position(std::int64_t row) const {
        return before[row / 64] + count_ones(bits[row / 64] & low_ones(static_cast<int>(row % 64)));
    }
};

/// Y = alpha (H - shift) X + beta Y for this rank's rows first .. first + rows - 1 of the space.
template <class T>
struct HamiltonianArgs {
    std::int64_t rows, first;
    int width;
    int entries;  // at most so many entries of a row beside the diagonal
    StateSpace space;
    BitTerms<T> terms;
    const T* characters;  // of the elements of the group
    const double* roots;  // the square roots of 0 .. 255
    HaloRows halo_rows;
    const T* halo;  // without gaps
    T alpha, beta;
    T shift;
    const T* shifts;  // width, or null
    const T* x;
    std::int64_t ldx;
    T* y;
    std::int64_t ldy;

    /// The row of X that holds `column`: below `rows` a row of x, otherwise of the halo.
    QUIVER_STATE_INLINE std::int64_t place_of(std::int64_t column) const {
        const std::int64_t own = column - first;
        return static_cast<std::uint64_t>(own) < static_cast<std::uint64_t>(rows)
                   ? own
                   : rows + halo_rows.position(column);
    }
    QUIVER_STATE_INLINE const T* row_of_x(std::int64_t at) const {
        return at < rows ? x + at * ldx : halo + (at - rows) * width;
    }
};

/// <s| H |s>. Math has times(T, double), times(T, T) and plus(T, T).
template <class Math, class T>
QUIVER_STATE_INLINE T diagonal_entry(const HamiltonianArgs<T>& args, std::uint64_t state) {
    T sum = args.terms.constant;
    for (int i = 0; i < args.terms.diagonal.count; ++i) {
        const DiagonalTerm<T>& term = args.terms.diagonal.data[i];
        const std::uint64_t partner = term.shift > 0 ? state >> term.shift : 0;
        const int ones = count_ones((state ^ partner) & term.mask);
        sum = Math::plus(sum, Math::times(term.coefficient, double(term.count - 2 * ones)));
    }
    for (int i = 0; i < args.terms.signs.count; ++i) {
        const SignTerm<T>& term = args.terms.signs.data[i];
        sum = Math::plus(sum, is_odd(state & term.sign) ? -term.coefficient : term.coefficient);
    }
    return sum;
}

/// Calls use(t, <s| H |t>) for all states t other than s for which a term has an entry.
template <class T, class Use>
QUIVER_STATE_INLINE void for_each_entry(const HamiltonianArgs<T>& args, std::uint64_t state,
                                        const Use& use) {
    for (int i = 0; i < args.terms.exchanges.count; ++i) {
        const ExchangeTerm<T>& term = args.terms.exchanges.data[i];
        std::uint64_t differ = (state ^ state >> term.shift) & term.mask;
        while (differ != 0) {
            const std::uint64_t bit = differ & (~differ + 1);
            differ ^= bit;
            use(state ^ (bit | bit << term.shift), term.coefficient);
        }
    }
    for (int i = 0; i < args.terms.flips.count; ++i) {
        const FlipTerm<T>& term = args.terms.flips.data[i];
        const std::uint64_t found = state & term.flip;
        if (found == term.value || found == term.other) {
            use(state ^ term.flip,
                is_odd(state & term.sign) ? -term.coefficient : term.coefficient);
        }
    }
}

/// An entry of a row: its column, and its value.
template <class T>
struct StateEntry {
    std::int64_t column;
    T value;
};

/// The entry of `row` that <s| H |t> = value contributes, s a state of the row. With symmetries t
/// is replaced by its representative; the entry is 0 in column `row` if the sector has none.
template <class Math, class T>
QUIVER_STATE_INLINE StateEntry<T> entry_of(const HamiltonianArgs<T>& args, std::int64_t row,
                                           std::uint64_t t, T value) {
    const StateSpace& space = args.space;
    if (!space.symmetric()) {
        return {space.rank(t), value};
    }
    const SmallestImage image = space.smallest_image(t);
    const std::int64_t column = space.row_of(image.word);
    if (column < 0) {
        return {row, T{}};
    }
    const double ratio = args.roots[space.stabiliser[column]] / args.roots[space.stabiliser[row]];
    const T character = args.characters[image.element];
    return {column, Math::times(Math::times(value, character), image.negative ? -ratio : ratio)};
}

/// bytes sizeof(T) rows width (2, or 3 with beta): the entries are computed. flops (at most; they
/// depend on the states) those of the diagonal and of all terms: rows width (1 + entries) 2, or 8.
template <class T>
constexpr Cost cost(const HamiltonianArgs<T>& args) {
    const double elements = static_cast<double>(args.rows) * args.width;
    return {args.rows, args.entries, args.width,
            elements * sizeof(T) * (args.beta == T(0) ? 2.0 : 3.0),
            elements * flops_per_multiply_add<T> * (1.0 + args.entries)};
}

#ifndef __CUDACC_RTC__
namespace host {
template <class T>
void hamiltonian(int threads, const HamiltonianArgs<T>& args);
}  // namespace host
namespace cuda {
template <class T>
void hamiltonian(Context& ctx, const HamiltonianArgs<T>& args);
}  // namespace cuda
#endif

}  // namespace quiver
