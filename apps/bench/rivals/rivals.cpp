// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "apps/bench/rivals/rival.hpp"
#include "apps/bench/words.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps::bench {
namespace {

struct Known {
    const char* name;
    Place place;
    std::unique_ptr<Rival> (*make)(Context&);
};

constexpr Known known[] = {{"cublas", Place::device, make_cublas},
                           {"cusparse", Place::device, make_cusparse},
                           {"cusolver", Place::device, make_cusolver},
                           {"openblas", Place::host, make_openblas},
                           {"eigen", Place::host, make_eigen}};

const Known& find(const std::string& name) {
    const auto* const found = std::find_if(std::begin(known), std::end(known),
                                           [&](const Known& each) { return name == each.name; });
    if (found == std::end(known)) {
        throw InputError(
            fmt::format("--rivals: there is no rival {}: cublas, cusparse, cusolver (device), "
                        "openblas, eigen (host)",
                        name));
    }
    return *found;
}

}  // namespace

void check_rivals(const std::string& list) {
    if (!list.empty()) {
        for (const std::string& name : split_list("--rivals", list)) {
            find(name);
        }
    }
}

Rivals make_rivals(Context& ctx, const std::string& list) {
    Rivals rivals;
    if (list.empty()) {
        return rivals;
    }
    std::vector<std::string> names;
    for (const std::string& name : split_list("--rivals", list)) {
        add_once(names, name);
    }
    for (const std::string& name : names) {
        const Known& rival = find(name);
        if (rival.place != ctx.place()) {
            throw InputError(
                fmt::format("--rivals {}: a library for the {}; choose it with --device {}", name,
                            rival.place == Place::host ? "host" : "GPU",
                            rival.place == Place::host ? "host" : "cuda"));
        }
        rivals.push_back(rival.make(ctx));
    }
    return rivals;
}

}  // namespace quiver::apps::bench
