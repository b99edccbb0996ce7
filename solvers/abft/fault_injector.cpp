// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/fault_injector.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <type_traits>
#include <utility>

#include "blockvec/error.hpp"
#include "blockvec/number_text.hpp"
#include "blockvec/scalar_list.hpp"
#include "kernels/column_ops.hpp"
#include "kernels/random.hpp"

namespace quiver {
namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& wanted) {
    throw InputError("fault injection: " + key + ": " + wanted);
}

std::int64_t whole(const std::string& key, const std::string& text, std::int64_t least,
                   std::int64_t most) {
    std::int64_t value = 0;
    if (parse_whole(text, value) != std::errc() || value < least || value > most) {
        refuse(key + "=" + text, "a whole number from " + std::to_string(least) + " to " +
                                     std::to_string(most) + " is wanted");
    }
    return value;
}

/// Splits "a,b,c" at the character `at`.
std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == at) {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

void take_places(const std::string& text, InjectOptions& options) {
    std::fill(std::begin(options.where), std::end(options.where), text == "all");
    if (text == "all") {
        return;
    }
    for (const std::string& name : split(text, '+')) {
        bool known = false;
        for (int place = 0; place < fault_places; ++place) {
            if (name == to_string(static_cast<FaultPlace>(place))) {
                options.where[place] = known = true;
            }
        }
        if (!known) {
            refuse("where=" + text, "input, output, matrix, guard, basis, joined by +, or all");
        }
    }
}

void take_bits(const std::string& text, InjectOptions& options) {
    if (text == "any") {
        return;
    }
    const std::vector<std::string> ends = split(text, '-');
    if (ends.size() > 2) {
        refuse("bit=" + text, "any, a number or LOW-HIGH is wanted");
    }
    options.low_bit = static_cast<int>(whole("bit", ends.front(), 0, 63));
    options.high_bit = static_cast<int>(whole("bit", ends.back(), options.low_bit, 63));
}

}  // namespace

const char* to_string(FaultPlace place) {
    constexpr const char* names[fault_places] = {"input", "output", "matrix", "guard", "basis"};
    return names[static_cast<int>(place)];
}

InjectOptions parse_injection(const std::string& text) {
    InjectOptions options;
    std::set<std::string> seen;
    for (const std::string& pair : split(text, ',')) {
        const std::size_t equals = pair.find('=');
        const std::string key = pair.substr(0, equals);
        const std::string value = equals == std::string::npos ? "" : pair.substr(equals + 1);
        if (!seen.insert(key).second) {
            refuse(key, "given twice");
        }
        if (key == "rate") {
            if (parse_real(value, options.rate) != std::errc() ||
                !(options.rate >= 0 && options.rate <= 1)) {
                refuse(pair, "a probability from 0 to 1 is wanted");
            }
        } else if (key == "where") {
            take_places(value, options);
        } else if (key == "bit") {
            take_bits(value, options);
        } else if (key == "seed") {
            options.seed = static_cast<std::uint64_t>(whole(key, value, 0, INT64_MAX));
        } else if (key == "rank") {
            options.rank = static_cast<int>(whole(key, value, 0, INT32_MAX));
        } else if (key == "step") {
            options.step = whole(key, value, 1, INT64_MAX);
        } else {
            refuse("'" + key + "'", "keys are rate, where, bit, seed, rank, step");
        }
    }
    if (!seen.contains("rate")) {
        refuse("rate", "missing, as in rate=0.01");
    }
    return options;
}

namespace {

template <class R>
R flipped(R number, int bit) {
    using Word = std::conditional_t<sizeof(R) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<R>(std::bit_cast<Word>(number) ^ (Word{1} << bit));
}

}  // namespace

template <class T>
std::optional<InjectedFault> FaultInjector::draw(Context& ctx, FaultPlace place,
                                                 BlockView<T> block) const {
    using R = real_t<T>;
    constexpr int bits = 8 * static_cast<int>(sizeof(R));
    if (!options_.where[static_cast<int>(place)] || options_.rate == 0 || block.empty() ||
        (options_.rank >= 0 && options_.rank != ctx.comm().rank()) ||
        (options_.step >= 0 && options_.step != step_)) {
        return std::nullopt;
    }
    const auto step = static_cast<std::uint64_t>(step_);
    const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(options_.seed),
                                           static_cast<std::uint32_t>(options_.seed >> 32)};
    const auto words = [&](std::uint32_t draw) {
        return philox({static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32),
                       static_cast<std::uint32_t>(ctx.comm().rank()),
                       static_cast<std::uint32_t>(place) * 2 + draw + 0x40000000u},
                      key);
    };
    const auto chance = words(0);
    if (static_cast<double>(chance[0]) >= options_.rate * 0x1p32) {
        return std::nullopt;
    }
    const auto choice = words(1);
    const std::uint64_t large = (std::uint64_t{choice[0]} << 32) | choice[1];
    const int high = std::min(options_.high_bit < 0 ? bits - 1 : options_.high_bit, bits - 1);
    const int low = std::min(options_.low_bit, high);
    InjectedFault fault;
    fault.place = place;
    fault.step = step_;
    fault.row = static_cast<std::int64_t>(large % static_cast<std::uint64_t>(block.rows));
    fault.column = static_cast<int>(choice[2] % static_cast<std::uint32_t>(block.cols));
    fault.part = is_complex_v<T> ? static_cast<int>(chance[1] % 2) : 0;
    fault.bit = low + static_cast<int>(choice[3] % static_cast<std::uint32_t>(high - low + 1));
    return fault;
}

template <class T>
void FaultInjector::record(InjectedFault fault, real_t<T> before) {
    fault.before = static_cast<double>(before);
    fault.after = static_cast<double>(flipped(before, fault.bit));
    faults_.push_back(fault);
}

template <class T>
bool FaultInjector::strike(Context& ctx, FaultPlace place, BlockView<T> block) {
    const std::optional<InjectedFault> fault = draw(ctx, place, block);
    if (!fault) {
        return false;
    }
    // Use copies: a small result lies in host memory whatever the Context's place is.
    const BlockView<T> element(block.data + fault->row * block.ld + fault->column, 1, 1, 1,
                               block.place);
    T value;
    const BlockView<T> read(&value, 1, 1, 1);
    copy(ctx, element, read);
    auto& part = reinterpret_cast<real_t<T>*>(&value)[fault->part];
    record<T>(*fault, part);
    part = flipped(part, fault->bit);
    copy(ctx, read, element);
    return true;
}

#define QUIVER_INSTANTIATE(T)                                                                     \
    template bool FaultInjector::strike(Context&, FaultPlace, BlockView<T>);                      \
    template std::optional<InjectedFault> FaultInjector::draw(Context&, FaultPlace, BlockView<T>) \
        const;                                                                                    \
    template void FaultInjector::record<T>(InjectedFault, real_t<T>);
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
