// SPDX-License-Identifier: BSD-3-Clause
#include "apps/report.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "blockvec/config.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps {
namespace {

constexpr int schema = 1;
constexpr std::size_t most_kernels_shown = 12;

using nlohmann::ordered_json;

ordered_json number(double value) {
    return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json numbers(const std::vector<double>& values) {
    ordered_json result = ordered_json::array();
    for (const double value : values) {
        result.push_back(number(value));
    }
    return result;
}

double rate(double amount, double seconds) {
    return amount / seconds * 1e-9;  // not finite without timing
}

ordered_json to_json(const KernelRecord& record) {
    return {{"name", record.call.name},
            {"scalar", std::string(1, letter(record.call.dtype))},
            {"place", to_string(record.call.place)},
            {"rows", record.call.rows},
            {"m", record.call.m},
            {"n", record.call.n},
            {"calls", record.calls},
            {"seconds", number(record.seconds)},
            {"bytes", number(record.bytes)},
            {"flops", number(record.flops)},
            {"gb_per_s", number(rate(record.bytes, record.seconds))},
            {"gflop_per_s", number(rate(record.flops, record.seconds))}};
}

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

std::string device_line(const EigsReport::Where& where) {
    std::string line = where.device;
    if (!where.device_name.empty()) {
        line += " " + where.device_name;
    }
    if (!where.note.empty()) {
        line += " (no GPU: quiver info devices says why)";
    }
    return line;
}

std::string kernel_table(const std::vector<KernelRecord>& kernels) {
    std::string text =
        fmt::format("\n{:<20} {:>6} {:>10} {:>5} {:>5} {:>8} {:>10} {:>8} {:>9}\n", "kernel",
                    "scalar", "rows", "m", "n", "calls", "seconds", "GB/s", "GFLOP/s");
    for (std::size_t i = 0; i < std::min(kernels.size(), most_kernels_shown); ++i) {
        const KernelRecord& record = kernels[i];
        text += fmt::format("{:<20} {:>6} {:>10} {:>5} {:>5} {:>8} {:>10.4f} {:>8.1f} {:>9.1f}\n",
                            record.call.name, letter(record.call.dtype), record.call.rows,
                            record.call.m, record.call.n, record.calls, record.seconds,
                            rate(record.bytes, record.seconds), rate(record.flops, record.seconds));
    }
    if (kernels.size() > most_kernels_shown) {
        text += fmt::format("and {} more in the JSON\n", kernels.size() - most_kernels_shown);
    }
    return text;
}

std::filesystem::path part_of(const std::string& path) {
    return fmt::format("{}.{}.part", path, getpid());
}

}  // namespace

std::string plural(std::int64_t count, const char* noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

const char* name_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::s:
            return "single";
        case Dtype::c:
            return "single complex";
        case Dtype::z:
            return "double complex";
        default:
            return "double";
    }
}

std::string to_table(const EigsReport& report, bool verbose) {
    const auto& matrix = report.matrix;
    const auto& where = report.where;
    std::string text = fmt::format("matrix      {}: {}, {}, {}, {}\n", matrix.spec,
                                   plural(matrix.rows, "row"), plural(matrix.nonzeros, "nonzero"),
                                   name_of(matrix.scalar), to_string(matrix.symmetry));
    text += fmt::format("device      {}\n", device_line(where));
    text += fmt::format("processes   {} of {}\n", plural(where.ranks, "rank"),
                        plural(where.threads, "thread"));
    const std::string wanted =
        report.window ? fmt::format("all in [{}, {}]", report.window->low, report.window->high)
                      : fmt::format("{} {}{}", report.k, report.which,
                                    report.k_lowered ? " (all, since the matrix has no more)" : "");
    text += fmt::format("method      {}, block {}, basis {}, {}, ", report.method, report.block,
                        report.basis, wanted);
    text += fmt::format("||A x - lambda x|| <= {:.3g} ||A||", report.tolerance);
    if (report.tolerance_raised) {
        text += fmt::format(" (raised from {:.3g}, which {} scalars cannot attain)",
                            report.tolerance_asked, name_of(matrix.scalar));
    }
    if (!report.method_reason.empty()) {
        text += fmt::format("\nreason      {}", report.method_reason);
    }
    const bool single = matrix.scalar == Dtype::s || matrix.scalar == Dtype::c;
    const int digits = single ? 8 : 15;
    const bool with_exact = !report.exact.empty();
    text += fmt::format("\n\n{:>4}  {:>23}  {:>9}", "", "eigenvalue", "residual");
    if (with_exact) {
        text += fmt::format("  {:>23}  {:>9}", "exact", "error");
    }
    text += '\n';
    const double accepted = report.tolerance * report.norm_estimate;
    bool any_marked = false;
    for (std::size_t i = 0; i < report.eigenvalues.size(); ++i) {
        const bool good = report.residuals[i] <= accepted;
        any_marked = any_marked || !good;
        text += fmt::format("{:>4}  {:>#23.{}g}  {:>9.1e}", i + 1, report.eigenvalues[i], digits,
                            report.residuals[i]);
        if (i < report.exact.size()) {
            text += fmt::format("  {:>#23.{}g}  {:>9.1e}", report.exact[i], digits,
                                std::abs(report.eigenvalues[i] - report.exact[i]));
        }
        text += good ? "\n" : "  *\n";
    }
    if (any_marked) {
        text += "   * residual above the tolerance\n";
    }
    text += fmt::format("\nnorm        ||A|| is about {:.6g}", report.norm_estimate);
    text += fmt::format("\nconverged   {}, multiplicity {}{}\n", report.converged ? "yes" : "NO",
                        report.verified ? "verified" : "UNVERIFIED",
                        report.cluster_cut ? ", the last eigenvalue has further copies" : "");
    if (report.window) {
        text += fmt::format(
            "window      {} found, {:.1f} +- {:.1f} expected from the density of states\n",
            plural(std::ssize(report.eigenvalues), "eigenvalue"), report.expected_count,
            report.expected_error);
    }
    for (const InertiaCount& count : report.inertia) {
        text += fmt::format("inertia     {} beyond {:.15g}, {} found{}\n",
                            plural(count.counted, "eigenvalue"), count.shift, count.expected,
                            !count.reliable  ? ": A PIVOT VANISHED, not reliable"
                            : count.agrees() ? ""
                                             : ": THEY DISAGREE");
    }
    if (!report.message.empty()) {
        text += fmt::format("because     {}\n", report.message);
        if (!report.interrupted && report.inertia.empty()) {
            text += fmt::format(
                "            a higher --max-iterations or a wider --basis (now {}) may do it\n",
                report.basis);
        }
    }
    text += fmt::format("work        {}, {}\n", plural(report.iterations, "iteration"),
                        plural(report.operator_applications, "product") + " with a vector");
    text += fmt::format("seconds     read {:.3f}, setup {:.3f}, solve {:.3f}\n",
                        report.seconds.read, report.seconds.setup, report.seconds.solve);
    if (verbose) {
        text += kernel_table(report.kernels);
    }
    return text;
}

std::string to_json(const EigsReport& report) {
    ordered_json kernels = ordered_json::array();
    for (const KernelRecord& record : report.kernels) {
        kernels.push_back(to_json(record));
    }
    ordered_json inertia = ordered_json::array();
    for (const InertiaCount& count : report.inertia) {
        inertia.push_back({{"shift", number(count.shift)},
                           {"expected", count.expected},
                           {"counted", count.counted},
                           {"reliable", count.reliable}});
    }
    ordered_json json = {
        {"schema", schema},
        {"command", "eigs"},
        {"version", config::version},
        {"date", utc_now()},
        {"matrix",
         {{"spec", report.matrix.spec},
          {"rows", report.matrix.rows},
          {"nnz", report.matrix.nonzeros},
          {"scalar", std::string(1, letter(report.matrix.scalar))},
          {"symmetry", to_string(report.matrix.symmetry)}}},
        {"k", report.k},
        {"which", report.which},
        {"window", report.window
                       ? ordered_json({number(report.window->low), number(report.window->high)})
                       : ordered_json()},
        {"expected_count", number(report.expected_count)},
        {"expected_error", number(report.expected_error)},
        {"method", report.method},
        {"method_reason", report.method_reason},
        {"block", report.block},
        {"basis", report.basis},
        {"seed", report.seed},
        {"tolerance", number(report.tolerance)},
        {"tolerance_asked", number(report.tolerance_asked)},
        {"tolerance_raised", report.tolerance_raised},
        {"eigenvalues", numbers(report.eigenvalues)},
        {"residuals", numbers(report.residuals)},
        {"exact_eigenvalues", numbers(report.exact)},
        {"norm_estimate", number(report.norm_estimate)},
        {"converged", report.converged},
        {"multiplicity", report.verified ? "verified" : "unverified"},
        {"cluster_cut", report.cluster_cut},
        {"interrupted", report.interrupted},
        {"inertia", std::move(inertia)},
        {"message", report.message},
        {"iterations", report.iterations},
        {"operator_applications", report.operator_applications},
        {"seconds",
         {{"read", number(report.seconds.read)},
          {"setup", number(report.seconds.setup)},
          {"solve", number(report.seconds.solve)}}},
        {"ranks", report.where.ranks},
        {"threads", report.where.threads},
        {"device", report.where.device},
        {"device_name", report.where.device_name},
        {"device_note", report.where.note},
        {"kernels", std::move(kernels)},
    };
    return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void print(const Comm& comm, const std::string& text) {
    comm.agree([&] {
        if (comm.rank() == 0 && (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
                                 std::fflush(stdout) != 0)) {
            throw Error(ErrorKind::other,
                        std::string("cannot write to stdout: ") + std::strerror(errno));
        }
    });
}

void check_writable(const std::string& path, const std::string& option) {
    if (path.empty()) {
        throw InputError(option + " '': the name of a file is wanted");
    }
    const std::filesystem::path part = part_of(path);
    // The finished file takes the name by a rename: that must not replace a device or a pipe.
    if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path)) {
        throw InputError(option + ": " + path + " exists and is no regular file");
    }
    if (!std::ofstream(part)) {
        throw InputError(option + ": cannot write " + path + ": " + std::strerror(errno));
    }
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
}

void write_file(const std::string& path, const std::string& text) {
    const std::filesystem::path part = part_of(path);
    std::ofstream out(part, std::ios::binary);
    out << text;
    out.close();
    std::error_code error;
    if (out) {
        std::filesystem::rename(part, path, error);
    }
    if (!out || error) {
        const std::string reason = error ? error.message() : std::strerror(errno);
        std::error_code ignored;
        std::filesystem::remove(part, ignored);
        throw Error(ErrorKind::other, "cannot write " + path + ": " + reason);
    }
}

}  // namespace quiver::apps
