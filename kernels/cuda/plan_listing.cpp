// SPDX-License-Identifier: BSD-3-Clause
// Lists of plans with given fields, for experiments.
#include "kernels/cuda/plan_listing.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include "blockvec/error.hpp"
#include "kernels/cuda/compile_queue.hpp"
#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/mixed_products.hpp"
#include "kernels/cuda/mtsm_products.hpp"
#include "kernels/cuda/plan_fields.hpp"
#include "kernels/cuda/planned_launch.hpp"
#include "kernels/cuda/planner.hpp"
#include "kernels/cuda/specialiser.hpp"
#include "kernels/tuning.hpp"

namespace quiver {
namespace {

using namespace cuda;

/// An aligned address for the layout of operands that do not exist.
template <class T>
T* some_address() {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<T*>(std::uintptr_t{1} << 20);
}

template <class T>
MtsmShape columns_shape(const PlannedProduct& product) {
    const bool square = product.operation == "mtsm-columns" && product.m == product.n;
    const std::int64_t k = square ? product.rows : product.m;
    return mtsm_shape(MtsmArgs<T, T>{product.rows, k, product.n, T(1), some_address<const T>(),
                                     product.rows, false, false, some_address<const T>(), 1, k,
                                     T(0), some_address<T>(), 1, product.rows});
}

template <class T>
MixedShape mixed_request(const PlannedProduct& product) {
    MixedTsmttsmArgs<T, float> args{};
    args.rows = product.rows;
    args.m = product.m;
    args.n = product.n;
    args.a = some_address<const T>();
    args.lda = product.m;
    args.b = some_address<const T>() + 8;
    args.ldb = product.n;
    return mixed_shape(args);
}

Served served_by(const PlannedProduct& product) {
    const ProductShape shape(product.scalar, product.m, product.n);
    const auto layout = [&](int columns) {
        return Layout::of(nullptr, columns, columns, shape.scalar_bytes());
    };
    return {shape, layout(product.m), layout(product.n)};
}

/// Calls f.operator()<Plan>(request) for the operation of a product.
template <class F>
decltype(auto) visit_product(const PlannedProduct& product, F&& f) {
    if (product.operation == "tsmttsm") {
        return f.template operator()<TsmttsmPlan>(served_by(product));
    }
    if (product.operation == "tsmm") {
        return f.template operator()<TsmmPlan>(served_by(product));
    }
    if (product.operation == "mtsm-columns" || product.operation == "tsmm-columns") {
        return f.template operator()<MtsmPlan>(
            visit_dtype(product.scalar, [&]<class T>() { return columns_shape<T>(product); }));
    }
    if (product.operation == "tsmttsm-mixed") {
        return f.template operator()<MixedPlan>(product.scalar == Dtype::h
                                                    ? mixed_request<half_t>(product)
                                                    : mixed_request<bfloat16_t>(product));
    }
    throw InputError("plans of " + product.operation +
                     ": tsmttsm, tsmm, mtsm-columns, tsmm-columns and tsmttsm-mixed have plans");
}

void require_device(const Context& ctx) {
    if (ctx.place() != Place::device) {
        throw UnsupportedError("plans: only kernels on a GPU have plans to choose from");
    }
}

}  // namespace

namespace cuda {

std::vector<ListedPlan> list_plans(const Machine& machine, const PlannedProduct& product,
                                   const std::string& fields, int most) {
    return visit_product(product, [&]<class Plan>(const typename Plan::Request& request) {
        std::vector<ListedPlan> listed;
        for (const auto& [clocks, plan] :
             plans_with<Plan>(request, machine, PlanFields(fields), most)) {
            listed.push_back({to_text(plan), clocks});
        }
        return listed;
    });
}

std::optional<KernelInstance> kernel_of_listed(const Machine& machine,
                                               const PlannedProduct& product,
                                               const std::string& plan_text) {
    if (product.operation.starts_with("batched-")) {
        return batched_kernel(product.operation.starts_with("batched-cholesky"),
                              product.operation.ends_with("-interleaved"), product.scalar,
                              product.n, plan_text);
    }
    return visit_product(
        product,
        [&]<class Plan>(const typename Plan::Request& request) -> std::optional<KernelInstance> {
            const auto plan = plan_of<Plan>(plan_text);
            const auto kernel = plan ? kernel_of(*plan, request, machine) : std::nullopt;
            return kernel ? std::optional(KernelInstance{kernel->source, kernel->expression})
                          : std::nullopt;
        });
}

}  // namespace cuda

std::vector<ListedPlan> list_plans(Context& ctx, const PlannedProduct& product,
                                   const std::string& fields, int most) {
    require_device(ctx);
    return cuda::list_plans(ctx.service<Planner>().machine(), product, fields, most);
}

void compile_plans(Context& ctx, std::span<const std::pair<PlannedProduct, std::string>> plans) {
    require_device(ctx);
    const Machine& machine = ctx.service<Planner>().machine();
    std::map<std::string, std::vector<std::string>> expressions;
    for (const auto& [product, text] : plans) {
        if (const auto kernel = kernel_of_listed(machine, product, text)) {
            auto& own = expressions[kernel->source];
            if (std::find(own.begin(), own.end(), kernel->expression) == own.end()) {
                own.push_back(kernel->expression);
            }
        }
    }
    for (const auto& [source, wanted] : expressions) {
        ctx.service<Specialiser>().prepare(source.c_str(), wanted, usable_cores());
    }
}

}  // namespace quiver
