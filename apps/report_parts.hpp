// SPDX-License-Identifier: BSD-3-Clause
// Parts that the reports of several subcommands share.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/report.hpp"

namespace quiver::apps {

/// The schema of the JSON objects that subcommands write.
inline constexpr int report_schema = 1;

/// The report of a subcommand as a JSON object: schema, command, version and date; `fields`; the
/// seconds of `run` (omitted if it has no phases), ranks, threads and device; `more`.
std::string json_report(const char* command, const nlohmann::ordered_json& fields,
                        const RunFacts& run);
std::string json_report(const char* command, const nlohmann::ordered_json& fields,
                        const RunFacts& run, const nlohmann::ordered_json& more);

/// A JSON number; null if it is not finite.
nlohmann::ordered_json json_number(double value);
nlohmann::ordered_json json_numbers(const std::vector<double>& values);
/// For each eigenvalue the number of decimal digits that its error bound (EigenResult::errors)
/// leaves certain, at most 15 or, in single precision, 7.
std::vector<int> correct_digits(const EigsReport& report);
/// A line with the number of eigenvalues of a converged result that have no certain digit; empty if
/// there are none.
std::string digits_line(const EigsReport& report);
nlohmann::ordered_json json_matrix(const EigsReport::Matrix& matrix);
nlohmann::ordered_json json_kernels(const std::vector<KernelRecord>& kernels);
nlohmann::ordered_json json_overhead(const std::vector<OverheadRecord>& overhead);

/// The lines about the matrix and the device.
std::string heading(const EigsReport::Matrix& matrix, const RunFacts::Where& where);
/// The lines about the device, with `note` after its name, and about ranks and threads.
std::string where_lines(const RunFacts::Where& where, const std::string& note = "");
std::string seconds_line(const RunFacts& run);
/// The seconds of the phase `name`; 0 without such a phase.
double seconds_of(const RunFacts& run, const std::string& name);

/// "abft        correct: 120 of 120 products checked, 3 faults found, 3 mended, ..."
std::string abft_line(const EigsReport::Abft& abft);
nlohmann::ordered_json json_abft(const EigsReport::Abft& abft);
std::string kernel_table(const std::vector<KernelRecord>& kernels);
/// The average cost of an iteration as a Markdown table: a row for each kernel (all shapes
/// together), one for all kernels, and one for each kind of work between kernels. `% of ceiling` is
/// the time that the bytes and flops of a kernel take at the highest speeds of the machine, over
/// the measured time; it is above 100 if operands come from a cache.
std::string profile_table(const std::vector<KernelRecord>& kernels,
                          const std::vector<OverheadRecord>& overhead, std::int64_t iterations,
                          double seconds, const bench::Ceilings& ceilings);

}  // namespace quiver::apps
