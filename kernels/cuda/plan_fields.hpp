// SPDX-License-Identifier: BSD-3-Clause
// Plans with given values of some fields. Pure arithmetic, as in plan.hpp.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "kernels/cuda/mixed_plan.hpp"
#include "kernels/cuda/mtsm_plan.hpp"
#include "kernels/cuda/plan.hpp"

namespace quiver::cuda {

/// "tensor=0 stages=1": values of fields.
class PlanFields {
  public:
    /// Throws InputError for a word that is not NAME=NUMBER.
    explicit PlanFields(const std::string& text) {
        std::istringstream stream(text);
        for (std::string word; stream >> word;) {
            const std::size_t sign = word.find('=');
            int value = 0;
            const char* const end = word.data() + word.size();
            if (sign == std::string::npos || sign + 1 == word.size() ||
                std::from_chars(word.data() + sign + 1, end, value).ptr != end) {
                throw InputError("fields of a plan: \"" + word + "\" is not NAME=NUMBER");
            }
            values_[word.substr(0, sign)] = value;
        }
    }

    const int* find(const std::string& name) const {
        const auto found = values_.find(name);
        return found == values_.end() ? nullptr : &found->second;
    }

    /// Sets those given fields of `plan` for which sets(name) holds; returns whether all others
    /// have their given values. Throws InputError if the plan lacks a given field.
    template <class Plan, class Sets>
    bool apply(Plan& plan, Sets&& sets) const {
        bool agrees = true;
        std::size_t known = 0;
        Plan::for_each_field(plan, [&]<class Value>(const char* name, Value& value) {
            if (const int* const given = find(name)) {
                ++known;
                if (sets(std::string(name))) {
                    value = static_cast<Value>(*given);
                }
                agrees = agrees && value == static_cast<Value>(*given);
            }
        });
        if (known != values_.size()) {
            throw InputError("fields of a plan: a field of these is unknown to " +
                             std::string(Plan::name));
        }
        return agrees;
    }

  private:
    std::map<std::string, int> values_;
};

/// The part of the parameter space that the fields permit. rows_or_m: the name of the first tile.
inline PlanSpace space_of(const PlanFields& fields, const char* rows_or_m) {
    PlanSpace space;
    const auto one = [&](const char* name, std::vector<int>& list) {
        if (const int* const given = fields.find(name)) {
            list = {*given};
        }
    };
    one("stages", space.stages);
    one("blocks", space.blocks);
    one("vector", space.vectors);
    one(rows_or_m, space.tiles_m);
    one("tile_n", space.tiles_n);
    if (const int* const tensor = fields.find("tensor")) {
        space.tensor = *tensor != 0;
    }
    if (const int* const threads = fields.find("threads")) {
        space.teams.clear();
        for (int team = 32; team <= *threads; team *= 2) {
            if (*threads % team == 0) {
                space.teams.emplace_back(team, *threads);
            }
        }
    }
    return space;
}

template <class Plan>
using RankedPlans = std::vector<std::pair<double, Plan>>;

/// The legal plans with these fields, best by the model first, at most `most`, with the clocks of
/// the model (0 for MixedPlan, which has no such function).
template <class Plan>
RankedPlans<Plan> plans_with(const typename Plan::Request& request, const Machine& machine,
                             const PlanFields& fields, int most) {
    constexpr std::size_t all = 1U << 30;
    RankedPlans<Plan> found;
    std::set<std::string> known;
    const auto add = [&](Plan plan, auto&& sets) {
        if (fields.apply(plan, sets) && kernel_of(plan, request, machine) &&
            known.insert(to_text(plan)).second) {
            double clocks = 0;
            if constexpr (std::is_same_v<Plan, MtsmPlan>) {
                clocks = model_clocks(plan, request, machine);
            } else if constexpr (!std::is_same_v<Plan, MixedPlan>) {
                clocks = model_clocks(plan, request.shape, machine);
            }
            found.emplace_back(clocks, plan);
        }
        return static_cast<int>(found.size()) < most;
    };
    const auto add_all = [&](const std::vector<Plan>& plans, auto&& sets) {
        for (const Plan& plan : plans) {
            if (!add(plan, sets)) {
                return;
            }
        }
    };
    // The space contains only plans with defaults of these fields.
    const auto free_field = [](const std::string& name) {
        return name == "blocked" || name == "unroll";
    };
    const auto every_field = [](const std::string&) { return true; };
    if constexpr (std::is_same_v<Plan, TsmttsmPlan>) {
        add_all(tsmttsm_plans_in(space_of(fields, "tile_m"), request.shape, machine, all),
                free_field);
    } else if constexpr (std::is_same_v<Plan, TsmmPlan>) {
        add_all(tsmm_plans_in(space_of(fields, "tile_rows"), request.shape, machine, all),
                free_field);
    } else if constexpr (std::is_same_v<Plan, MixedPlan>) {
        const int* const fold = fields.find("fold");
        add_all(mixed_plans(fold != nullptr && *fold == 1 ? unfolded(request) : request, machine),
                every_field);
    } else {
        // Fields that are given may change the order of the model, so all plans are ranked again.
        const int wanted = std::exchange(most, 1 << 30);
        add_all(mtsm_plans(request, machine), every_field);
        std::stable_sort(found.begin(), found.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        found.resize(std::min(found.size(), static_cast<std::size_t>(wanted)));
    }
    return found;
}

}  // namespace quiver::cuda
