// SPDX-License-Identifier: BSD-3-Clause
// A bench session in the schema of docs/bench.md, written and read again.
#pragma once

#include <map>
#include <string>
#include <vector>

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
    /// Why --device auto took the host.
    std::string device_note;
    double cache_bytes = 0;
    /// Versions of the rivals by name.
    std::map<std::string, std::string> rivals = {};
    /// Of the NVIDIA driver; empty where it is not known.
    std::string driver = {};
    /// Of this library, and of the CUDA that it was built with, empty without.
    std::string version = config::version;
    std::string cuda = config::have_cuda ? config::cuda_version : "";
};

/// All that is saved.
struct Document {
    /// What was asked for.
    std::string kernel;
    int repeat = 0;
    double budget = 0;
    Environment environment;
    Session session;
};

/// One JSON object, schema 5; numbers that are not finite become null.
std::string to_json(const Document& document);

/// Throws InputError that names the file where it is not what to_json writes, now or in schema 2.
Document read_document(const std::string& path);

/// Several sessions as one: of two results of a case and library the later one counts. At least
/// one. Throws InputError for sessions of different machines.
Document merge(const std::vector<Document>& documents);

}  // namespace quiver::apps::bench
