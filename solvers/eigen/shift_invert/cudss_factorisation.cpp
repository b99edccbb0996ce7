// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/eigen/shift_invert/cudss_factorisation.hpp"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/memory.hpp"
#include "blockvec/number_text.hpp"
#include "solvers/eigen/shift_invert/cudss.hpp"
#include "solvers/eigen/shift_invert/gathered_matrix.hpp"

namespace quiver {
namespace {

constexpr double megabyte = 1e6;

/// Pivots below this are replaced by it. The entries of A and B are scaled to about 1, so that the
/// change is a rounding error, while the factors stay finite.
constexpr double least_pivot = std::numeric_limits<double>::epsilon() / 2;

template <class V>
Buffer upload(Context& ctx, const std::vector<V>& from) {
    Buffer to = ctx.allocate(MemoryKind::device, from.size() * sizeof(V), "shift-invert: A");
    device::copy(to.as<void>(), from.data(), from.size() * sizeof(V), ctx.stream());
    return to;
}

/// A matrix object of cuDSS, destroyed at the end of the scope.
class CudssMatrix {
  public:
    explicit CudssMatrix(const CudssLibrary& library) : library_(library) {}
    CudssMatrix(const CudssMatrix&) = delete;
    CudssMatrix& operator=(const CudssMatrix&) = delete;
    ~CudssMatrix() {
        if (value != nullptr) {
            static_cast<void>(library_.matrix_destroy(value));
        }
    }
    void* value = nullptr;

  private:
    const CudssLibrary& library_;
};

}  // namespace

template <class W>
struct CudssFactorisation<W>::Data {
    static constexpr int value_type =
        is_complex_v<W> ? CudssLibrary::complex_double : CudssLibrary::real_double;

    explicit Data(Context& context)
        : ctx(context),
          cudss(ctx.service<Cudss>()),
          library(cudss.library()),
          held_before(cudss.held_bytes()) {}
    Data(const Data&) = delete;
    Data& operator=(const Data&) = delete;
    ~Data() {
        if (data != nullptr) {
            static_cast<void>(library.data_destroy(cudss.handle(), data));
        }
        if (config != nullptr) {
            static_cast<void>(library.config_destroy(config));
        }
    }

    Context& ctx;
    Cudss& cudss;
    const CudssLibrary& library;
    std::size_t held_before;
    void* config = nullptr;
    void* data = nullptr;
    CudssForecast forecast;
    bool has_factors = false;
    /// The upper triangle of A - sigma B with a full diagonal; ascending columns.
    std::int64_t rows = 0;
    std::vector<int> row_start;
    std::vector<int> column;
    std::vector<W> value;
    Buffer device_row_start;
    Buffer device_column;
    Buffer device_value;
    CudssMatrix matrix{library};

    void set_pattern(const CsrRows<W>& a, const CsrRows<W>* b);
    void set_values(const CsrRows<W>& a, const CsrRows<W>* b, double sigma);
    void add_upper(const CsrRows<W>& from, double factor);

    template <class V>
    void configure(int parameter, V setting) {
        cudss.check(library.config_set(config, parameter, &setting, sizeof(setting)),
                    "cudssConfigSet");
    }
    void create_objects();
    void create_dense(CudssMatrix& dense, int cols, const void* values) const {
        cudss.check(library.matrix_create_dense(&dense.value, rows, cols, rows, values, value_type,
                                                CudssLibrary::column_major),
                    "cudssMatrixCreateDn");
    }
    int execute(int phase, const CudssMatrix& solution, const CudssMatrix& right) const {
        const int status = library.execute(cudss.handle(), phase, config, data, matrix.value,
                                           solution.value, right.value);
        ctx.synchronize();
        return status;
    }
    /// A phase that reads no right-hand side.
    int execute(int phase) const {
        CudssMatrix solution(library);
        CudssMatrix right(library);
        create_dense(solution, 1, nullptr);
        create_dense(right, 1, nullptr);
        return execute(phase, solution, right);
    }
    /// Integers that the library stores in 4 or 8 bytes each.
    template <std::size_t N>
    void get_integers(int parameter, std::int64_t (&to)[N]) const;
    void require_room() const;
};

template <class W>
void CudssFactorisation<W>::Data::set_pattern(const CsrRows<W>& a, const CsrRows<W>* b) {
    rows = a.map.global_rows();
    row_start.push_back(0);
    std::vector<std::int64_t> found;
    for (std::int64_t row = 0; row < rows; ++row) {
        found.assign(1, row);
        for (const CsrRows<W>* const from : {&a, b}) {
            if (from != nullptr) {
                visit_row(*from, row, [&](std::int64_t to, const W&) {
                    if (to > row) {
                        found.push_back(to);
                    }
                });
            }
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        column.insert(column.end(), found.begin(), found.end());
        if (column.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
            throw InputError("shift-invert: the upper triangle has more than " +
                             std::to_string(std::numeric_limits<int>::max()) +
                             " entries, too many for cuDSS; set QUIVER_CUDSS=none");
        }
        row_start.push_back(static_cast<int>(column.size()));
    }
    value.resize(column.size());
}

/// Adds `factor` times the upper triangle to the values.
template <class W>
void CudssFactorisation<W>::Data::add_upper(const CsrRows<W>& from, double factor) {
    for (std::int64_t row = 0; row < rows; ++row) {
        const auto first = column.begin() + row_start[static_cast<std::size_t>(row)];
        const auto last = column.begin() + row_start[static_cast<std::size_t>(row) + 1];
        visit_row(from, row, [&](std::int64_t to, const W& entry) {
            if (to >= row) {
                const auto place = std::lower_bound(first, last, static_cast<int>(to));
                // The diagonal of a Hermitian matrix is real.
                value[static_cast<std::size_t>(place - column.begin())] +=
                    factor * (to == row ? W(std::real(entry)) : entry);
            }
        });
    }
}

template <class W>
void CudssFactorisation<W>::Data::set_values(const CsrRows<W>& a, const CsrRows<W>* b,
                                             double sigma) {
    std::fill(value.begin(), value.end(), W(0));
    add_upper(a, 1);
    if (b != nullptr) {
        add_upper(*b, -sigma);
    } else {
        for (std::int64_t row = 0; row < rows; ++row) {
            // The diagonal is the first entry of a row.
            value[static_cast<std::size_t>(row_start[static_cast<std::size_t>(row)])] -= sigma;
        }
    }
}

template <class W>
void CudssFactorisation<W>::Data::create_objects() {
    cudss.check(library.config_create(&config), "cudssConfigCreate");
    configure(CudssLibrary::config_pivot_type, CudssLibrary::pivot_bunch_kaufman);
    configure(CudssLibrary::config_pivot_epsilon, least_pivot);
    // Matching would depend on the values, which the shift changes after the analysis.
    configure(CudssLibrary::config_matching, CudssLibrary::matching_none);
    // The residuals of solves without refinement bound the error of the counts.
    configure(CudssLibrary::config_refinement_steps, 0);
    configure(CudssLibrary::config_host_threads, ctx.threads());
    cudss.check(library.data_create(cudss.handle(), &data), "cudssDataCreate");
    device_row_start = upload(ctx, row_start);
    device_column = upload(ctx, column);
    device_value = upload(ctx, value);
    cudss.check(library.matrix_create_csr(
                    &matrix.value, rows, rows, static_cast<std::int64_t>(column.size()),
                    device_row_start.as<void>(), nullptr, device_column.as<void>(),
                    device_value.as<void>(), CudssLibrary::int_32, CudssLibrary::int_32, value_type,
                    is_complex_v<W> ? CudssLibrary::hermitian : CudssLibrary::symmetric,
                    CudssLibrary::upper_view, CudssLibrary::base_zero),
                "cudssMatrixCreateCsr");
}

template <class W>
template <std::size_t N>
void CudssFactorisation<W>::Data::get_integers(int parameter, std::int64_t (&to)[N]) const {
    std::size_t bytes = 0;
    cudss.check(library.data_get(cudss.handle(), data, parameter, nullptr, 0, &bytes),
                "cudssDataGet");
    if (bytes == N * sizeof(std::int64_t)) {
        cudss.check(library.data_get(cudss.handle(), data, parameter, to, bytes, &bytes),
                    "cudssDataGet");
        return;
    }
    std::int32_t narrow[N] = {};
    cudss.check(library.data_get(cudss.handle(), data, parameter, narrow, sizeof(narrow), &bytes),
                "cudssDataGet");
    std::copy(std::begin(narrow), std::end(narrow), std::begin(to));
}

template <class W>
void CudssFactorisation<W>::Data::require_room() const {
    const double held = static_cast<double>(cudss.held_bytes() - held_before);
    const double needed = forecast.bytes - held;
    const auto available = static_cast<double>(device::available_bytes(ctx.device().id));
    if (needed > available) {
        throw MemoryError("shift-invert: the factors take " + number_text(needed / megabyte, 4) +
                          " MB of device memory, and " + number_text(available / megabyte, 4) +
                          " MB are available: set QUIVER_CUDSS=none to factorise in host memory, "
                          "or take a method that iterates");
    }
}

template <class W>
CudssFactorisation<W>::CudssFactorisation(Context& ctx, const CsrRows<W>& a, const CsrRows<W>* b)
    : data_(std::make_unique<Data>(ctx)) {
    Data& data = *data_;
    data.set_pattern(a, b);
    data.create_objects();
    data.cudss.check(data.execute(CudssLibrary::phase_analysis), "shift-invert: analysis by cuDSS");
    std::int64_t entries[1] = {};
    data.get_integers(CudssLibrary::data_entries, entries);
    data.forecast.entries = static_cast<double>(entries[0]);
    // Device memory: permanent, peak; host memory: permanent, peak; other values.
    std::int64_t bytes[16] = {};
    data.get_integers(CudssLibrary::data_memory_estimates, bytes);
    data.forecast.bytes = static_cast<double>(std::max(bytes[0], bytes[1]));
}

template <class W>
CudssFactorisation<W>::~CudssFactorisation() = default;

template <class W>
const CudssForecast& CudssFactorisation<W>::forecast() const {
    return data_->forecast;
}

template <class W>
FactorFacts CudssFactorisation<W>::factor(const CsrRows<W>& a, const CsrRows<W>* b, double sigma) {
    Data& data = *data_;
    data.set_values(a, b, sigma);
    device::copy(data.device_value.template as<void>(), data.value.data(),
                 data.value.size() * sizeof(W), data.ctx.stream());
    if (!data.has_factors) {
        data.require_room();
    }
    // Not the phase of refactorisation, which may keep the pivots of another shift.
    data.cudss.check(data.execute(CudssLibrary::phase_factorisation),
                     "shift-invert: factorisation by cuDSS");
    data.has_factors = true;
    std::int64_t info[1] = {};
    data.get_integers(CudssLibrary::data_info, info);
    FactorFacts facts;
    if (info[0] != 0) {
        return facts;
    }
    // The numbers of positive and of negative pivots. Pivots that are zero or NaN are in neither.
    std::int64_t signs[2] = {};
    data.get_integers(CudssLibrary::data_inertia, signs);
    facts.complete = true;
    facts.below = signs[1];
    facts.zero = data.rows - signs[0] - signs[1];
    return facts;
}

template <class W>
void CudssFactorisation<W>::solve(BlockView<W> x) {
    if (x.empty()) {
        return;
    }
    const Data& data = *data_;
    Context& ctx = data.ctx;
    const auto rows = static_cast<std::size_t>(x.rows);
    const std::size_t bytes = rows * static_cast<std::size_t>(x.cols) * sizeof(W);
    const Scratch host(ctx.memory(), MemoryKind::pinned, bytes);
    const Scratch right(ctx.memory(), MemoryKind::device, bytes);
    const Scratch solution(ctx.memory(), MemoryKind::device, bytes);
    // The library takes column-major blocks only.
    W* const columns = host.template as<W>();
    const auto visit = [&](auto&& move) {
        for (std::int64_t i = 0; i < x.rows; ++i) {
            for (int c = 0; c < x.cols; ++c) {
                move(x.data[i * x.ld + c],
                     columns[static_cast<std::size_t>(c) * rows + static_cast<std::size_t>(i)]);
            }
        }
    };
    CudssMatrix from(data.library);
    CudssMatrix to(data.library);
    data.create_dense(from, x.cols, right.template as<void>());
    data.create_dense(to, x.cols, solution.template as<void>());
    visit([](const W& of_x, W& column) { column = of_x; });
    device::copy(right.template as<void>(), columns, bytes, ctx.stream());
    data.cudss.check(data.execute(CudssLibrary::phase_solve, to, from),
                     "shift-invert: solve by cuDSS");
    device::copy(columns, solution.template as<void>(), bytes, ctx.stream());
    ctx.synchronize();
    visit([](W& of_x, const W& column) { of_x = column; });
}

template class CudssFactorisation<double>;
template class CudssFactorisation<std::complex<double>>;

}  // namespace quiver
