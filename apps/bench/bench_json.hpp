// SPDX-License-Identifier: BSD-3-Clause
// Writes and reads a bench session in the JSON schema of docs/bench.md.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/bench/figures.hpp"
#include "apps/bench/runner.hpp"
#include "blockvec/config.hpp"

namespace quiver::apps::bench {

/// Where a session ran.
struct Environment {
    std::string cpu;
    int threads = 1;
    /// "host" or "cuda".
    std::string device = "host";
    /// The GPU's name, empty on the host.
    std::string gpu;
    /// Why --device auto chose the host; otherwise empty.
    std::string device_note;
    double cache_bytes = 0;
    /// Versions of the rivals by name.
    std::map<std::string, std::string> rivals = {};
    /// The version of the NVIDIA driver; empty if unknown.
    std::string driver = {};
    /// The version of this library, and of the CUDA that it was built with; empty without CUDA.
    std::string version = config::version;
    std::string cuda = config::have_cuda ? config::cuda_version : "";
};

/// Everything that is saved.
struct Document {
    /// The list of kernels on the command line.
    std::string kernel;
    int repeat = 0;
    double budget = 0;
    Environment environment;
    Session session;
    /// Tables of figures; not read from a file.
    std::vector<FigureTable> figures = {};
};

/// One JSON object, schema 5; numbers that are not finite become null.
std::string to_json(const Document& document);

/// Reads a file that to_json wrote, in the current schema or in schema 2. Throws InputError that
/// names the file for any other content.
Document read_document(const std::string& path);

/// The object `ceilings` of a run, and its inverse. Reading throws nlohmann::json::exception for
/// any other content.
nlohmann::ordered_json json_ceilings(const Ceilings& ceilings);
Ceilings read_ceilings(const nlohmann::ordered_json& json);

/// Merges at least one session into one. If a case and library occur twice, the later result
/// counts. Of the cases that were not run only those of the first session are kept. Throws
/// InputError for sessions of different machines.
Document merge(const std::vector<Document>& documents);

}  // namespace quiver::apps::bench
