// SPDX-License-Identifier: BSD-3-Clause
// Exchanges of bits for a run of rows: all rows whose states have the same high bits. Private to
// kernels/host/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/operations/hamiltonian.hpp"

namespace quiver::host {

/// Two places in runs of rows.
struct RunPair {
    std::int32_t first;
    std::int32_t second;
};

/// The exchange of the bits i < j of a state. A state is the word (high, low); a run has one high
/// word and all low words with a fixed number of ones in ascending order, so that the place of a
/// row in its run depends on its low word only.
template <class T>
struct RunExchange {
    enum class Kind : std::uint8_t {
        /// Both bits are low: the exchange pairs rows of the run.
        within,
        /// Bit i is low: rows of the run have entries at places of another run.
        across,
        /// Both bits are high: every row has its entry at the same place of another run.
        between,
    };
    Kind kind;
    int low_bit;              // i
    std::uint64_t high_flip;  // the bits that change in the high word
    T coefficient;
    int lists;  // the index of the first list of this exchange
};

/// Lists of the places that exchanges of low bits connect, for every number of ones. The order of
/// the exchanges is that of for_each_entry(): sums over a run have the bits of sums row by row.
template <class T>
class ExchangeRuns {
  public:
    /// None if the terms are not exchanges only, if the rows are not all words with a number of
    /// ones, or if lists would take longer to make than the products.
    static std::optional<ExchangeRuns> make(const HamiltonianArgs<T>& args) {
        constexpr std::int64_t rows_of_word = 32;
        const StateSpace& space = args.space;
        const WordList& list = space.low;
        if (space.symmetric() || space.high.bits > 0 || list.high == nullptr ||
            args.terms.flips.count > 0 || args.rows < space.rows ||
            space.rows >> list.low_bits < rows_of_word) {
            return std::nullopt;
        }
        return ExchangeRuns(args);
    }

    const std::vector<RunExchange<T>>& exchanges() const { return exchanges_; }
    /// The low words with this number of ones, ascending.
    const std::vector<std::uint32_t>& words(int ones) const {
        return words_[static_cast<std::size_t>(ones)];
    }
    std::int64_t longest() const { return longest_; }
    /// within: the two places of each pair of words of a run with `ones` ones in its low words.
    const std::vector<RunPair>& pairs(const RunExchange<T>& exchange, int ones) const {
        return lists_[static_cast<std::size_t>(exchange.lists + ones)];
    }
    /// across: the places of the words with bit i = `bit`, and their entries' places in the other
    /// run.
    const std::vector<RunPair>& links(const RunExchange<T>& exchange, int ones, bool bit) const {
        return lists_[static_cast<std::size_t>(exchange.lists + 2 * ones + (bit ? 1 : 0))];
    }

  private:
    explicit ExchangeRuns(const HamiltonianArgs<T>& args)
        : list_(args.space.low), words_(static_cast<std::size_t>(list_.low_bits) + 1) {
        for (std::uint32_t word = 0; word >> list_.low_bits == 0; ++word) {
            words_[static_cast<std::size_t>(count_ones(word))].push_back(word);
        }
        for (const std::vector<std::uint32_t>& words : words_) {
            longest_ = std::max(longest_, static_cast<std::int64_t>(words.size()));
        }
        for (int term = 0; term < args.terms.exchanges.count; ++term) {
            const ExchangeTerm<T>& exchange = args.terms.exchanges.data[term];
            for (std::uint64_t mask = exchange.mask; mask != 0; mask &= mask - 1) {
                add(lowest_one(mask), exchange.shift, exchange.coefficient);
            }
        }
    }

    std::int32_t place(std::uint32_t word) const { return list_.low[word]; }

    void add(int i, int shift, T coefficient) {
        using Kind = typename RunExchange<T>::Kind;
        const int j = i + shift;
        const int low_bits = list_.low_bits;
        const auto high = [&](int bit) { return std::uint64_t{1} << (bit - low_bits); };
        const auto lists = static_cast<int>(lists_.size());
        if (i >= low_bits) {
            exchanges_.push_back({Kind::between, i, high(i) | high(j), coefficient, lists});
            return;
        }
        const std::uint32_t bit_i = std::uint32_t{1} << i;
        if (j >= low_bits) {
            exchanges_.push_back({Kind::across, i, high(j), coefficient, lists});
            lists_.resize(lists_.size() + 2 * words_.size());
            for (std::size_t ones = 0; ones < words_.size(); ++ones) {
                for (const std::uint32_t word : words_[ones]) {
                    const std::size_t set = (word & bit_i) != 0 ? 1 : 0;
                    lists_[static_cast<std::size_t>(lists) + 2 * ones + set].push_back(
                        {place(word), place(word ^ bit_i)});
                }
            }
            return;
        }
        const std::uint32_t bit_j = std::uint32_t{1} << j;
        exchanges_.push_back({Kind::within, i, 0, coefficient, lists});
        lists_.resize(lists_.size() + words_.size());
        for (std::size_t ones = 0; ones < words_.size(); ++ones) {
            for (const std::uint32_t word : words_[ones]) {
                if ((word & bit_i) != 0 && (word & bit_j) == 0) {
                    lists_[static_cast<std::size_t>(lists) + ones].push_back(
                        {place(word), place(word ^ bit_i ^ bit_j)});
                }
            }
        }
    }

    WordList list_;
    std::vector<std::vector<std::uint32_t>> words_;
    std::vector<RunExchange<T>> exchanges_;
    std::vector<std::vector<RunPair>> lists_;
    std::int64_t longest_ = 0;
};

}  // namespace quiver::host
