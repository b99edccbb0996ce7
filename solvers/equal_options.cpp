// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/equal_options.hpp"

#include <bit>
#include <limits>
#include <span>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"

namespace quiver {
namespace {

constexpr std::int64_t smallest_key = std::numeric_limits<std::int64_t>::min();

/// Maps doubles to integers of the same order; negative numbers map to -1 and below.
std::int64_t key_of(double value) {
    const auto bits = std::bit_cast<std::int64_t>(value + 0.0);  // -0 is 0
    return bits >= 0 ? bits : ~(bits ^ smallest_key);
}

double value_of(std::int64_t key) {
    return std::bit_cast<double>(key >= 0 ? key : ~key ^ smallest_key);
}

}  // namespace

void EqualOptions::add(const char* name, std::int64_t value) {
    options_.push_back({name, value, [](std::int64_t key) { return std::to_string(key); }});
}

void EqualOptions::add(const char* name, std::uint64_t value) {
    const auto flipped = static_cast<std::uint64_t>(smallest_key);
    options_.push_back({name, static_cast<std::int64_t>(value ^ flipped), [](std::int64_t key) {
                            return std::to_string(static_cast<std::uint64_t>(key) ^ flipped);
                        }});
}

void EqualOptions::add(const char* name, double value) {
    constexpr int digits = 15;
    options_.push_back(
        {name, key_of(value), [](std::int64_t key) { return number_text(value_of(key), digits); }});
}

void EqualOptions::add(const char* name, bool value) {
    add_choice(name, value ? 1 : 0, [](int flag) { return flag == 1 ? "yes" : "no"; });
}

void EqualOptions::add_choice(const char* name, int value, std::function<std::string(int)> text) {
    options_.push_back({name, value, [text = std::move(text)](std::int64_t key) {
                            return text(static_cast<int>(key));
                        }});
}

void EqualOptions::add_list(const char* name, const void* data, std::size_t count,
                            std::size_t bytes_each) {
    options_.push_back({name, static_cast<std::int64_t>(count),
                        [](std::int64_t key) { return std::to_string(key) + " values"; }});
    // FNV-1a.
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::byte byte :
         std::span(static_cast<const std::byte*>(data), count * bytes_each)) {
        hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
    }
    options_.push_back({name, static_cast<std::int64_t>(hash), {}});
}

void EqualOptions::require(const Comm& comm) const {
    if (comm.size() == 1) {
        return;
    }
    std::vector<std::int64_t> most;
    for (const Option& option : options_) {
        most.push_back(option.key);
        most.push_back(~option.key);  // falls as the key grows, without an overflow
    }
    comm.max(std::span<std::int64_t>(most));
    for (std::size_t i = 0; i < options_.size(); ++i) {
        const Option& option = options_[i];
        const std::int64_t largest = most[2 * i];
        const std::int64_t smallest = ~most[2 * i + 1];
        if (smallest != largest) {
            throw_collective(ErrorKind::input,
                             solver_ + ": the ranks disagree on " + option.name +
                                 (option.text ? ": smallest " + option.text(smallest) +
                                                    ", largest " + option.text(largest)
                                              : std::string(": its values differ")) +
                                 "; give the same value on every rank");
        }
    }
}

}  // namespace quiver
