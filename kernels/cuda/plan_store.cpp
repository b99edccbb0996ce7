// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/plan_store.hpp"

#include <charconv>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

#include "kernels/cuda/hash.hpp"

namespace quiver::cuda {
namespace {

constexpr std::size_t digits = 16;

/// The line "KEY PLAN CHECKSUM".
std::string line_of(std::uint64_t key, const std::string& plan) {
    const std::string text = hex(key) + " " + plan;
    return text + " " + hex(hash(text)) + "\n";
}

}  // namespace

PlanStore::PlanStore(const std::string& folder, const std::string& version) {
    if (folder.empty()) {
        return;
    }
    path_ = folder + "/" + version + ".txt";
    std::ostringstream lines;
    lines << std::ifstream(path_).rdbuf();
    remember(lines.str());
}

void PlanStore::remember(const std::string& lines) {
    std::istringstream text(lines);
    for (std::string line; std::getline(text, line);) {
        std::uint64_t key = 0;
        if (line.size() < 2 * digits + 2 ||
            std::from_chars(line.data(), line.data() + digits, key, 16).ptr !=
                line.data() + digits) {
            continue;
        }
        const std::string plan = line.substr(digits + 1, line.size() - 2 * digits - 2);
        if (line_of(key, plan) == line + "\n") {
            plans_[key] = plan;
        }
    }
}

std::string PlanStore::text() const {
    std::string text;
    for (const auto& [key, plan] : plans_) {
        text += line_of(key, plan);
    }
    return text;
}

const std::string* PlanStore::find(std::uint64_t key) const {
    const auto found = plans_.find(key);
    return found == plans_.end() ? nullptr : &found->second;
}

void PlanStore::add(std::uint64_t key, const std::string& plan) {
    plans_[key] = plan;
    if (path_.empty()) {
        return;
    }
    const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) {
        return;
    }
    // A single write keeps the lines of several processes apart; a mixed-up line fails its checksum
    // and is ignored.
    const std::string line = line_of(key, plan);
    static_cast<void>(::write(file, line.data(), line.size()) == 0);
    static_cast<void>(::close(file));
}

std::uint64_t PlanStore::model_version() {
    constexpr std::uint64_t version = hash(QUIVER_PLAN_SOURCES);
    return version;
}

}  // namespace quiver::cuda
