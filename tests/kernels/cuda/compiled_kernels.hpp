// SPDX-License-Identifier: BSD-3-Clause
// Compiles instances of kernels, several in one program, and reads registers and spills from the
// compiler's log.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/nvrtc_compile.hpp"
#include "kernels/cuda/plan.hpp"
#include "tests/support/test_context.hpp"

namespace quiver::cuda {

struct Resources {
    std::string expression;
    std::string arch;
    int registers = 0;
    int spilled_bytes = 0;
};

inline int number_before(const std::string& line, const char* word) {
    const std::size_t end = line.find(word);
    const std::size_t begin = line.find_last_of(" ,", end - 2);
    return std::stoi(line.substr(begin + 1, end - begin - 1));
}

/// The resources of the kernels of one program, in the order of its expressions, read from the
/// compiler's log.
inline std::vector<Resources> read_log(const CompileRequest& request,
                                       const CompiledProgram& program) {
    std::map<std::string, Resources> by_name;
    std::istringstream log(program.log);
    Resources* current = nullptr;
    for (std::string line; std::getline(log, line);) {
        if (line.find("Compiling entry function") != std::string::npos) {
            const std::size_t begin = line.find('\'') + 1;
            current = &by_name[line.substr(begin, line.find('\'', begin) - begin)];
        } else if (current != nullptr && line.find("bytes spill stores") != std::string::npos) {
            current->spilled_bytes = number_before(line, "bytes spill stores") +
                                     number_before(line, "bytes spill loads");
        } else if (current != nullptr && line.find("Used ") != std::string::npos) {
            current->registers = number_before(line, "registers");
        }
    }
    std::vector<Resources> result;
    for (std::size_t i = 0; i < request.expressions.size(); ++i) {
        Resources found = by_name[program.lowered_names[i]];
        found.expression = request.expressions[i];
        found.arch = request.arch;
        result.push_back(found);
    }
    return result;
}

/// Instances to compile, at most eight in one program.
class Batch {
  public:
    /// Compiles one in `share` of the instances, chosen at random; with QUIVER_TEST_ALL_CASES 20
    /// times as many.
    explicit Batch(unsigned share = 1)
        : share_(std::getenv("QUIVER_TEST_ALL_CASES") != nullptr ? std::max(1U, share / 20)
                                                                 : share) {}

    void add(const char* source, const char* arch, const std::string& expression) {
        ++offered_;
        if (generator_() % share_ != 0) {
            return;
        }
        ++chosen_;
        auto& open = open_[std::string(source) + arch];
        if (open.expressions.empty()) {
            open = {source, {}, arch, {"--ptxas-options=-v"}};
        }
        open.expressions.push_back(expression);
        if (open.expressions.size() == 8) {
            requests_.push_back(std::move(open));
            open = {};
        }
    }

    /// The number of calls of add().
    std::size_t offered() const { return offered_; }

    /// Compiles the chosen instances on two threads. An error fails the test.
    std::vector<Resources> compile_all() {
        for (auto& [name, open] : open_) {
            if (!open.expressions.empty()) {
                requests_.push_back(std::move(open));
            }
        }
        std::vector<Resources> result;
        std::atomic<std::size_t> next = 0;
        std::mutex mutex;
        const auto work = [&] {
            for (std::size_t i = next++; i < requests_.size(); i = next++) {
                try {
                    const auto read = read_log(requests_[i], compile(requests_[i]));
                    const std::lock_guard lock(mutex);
                    result.insert(result.end(), read.begin(), read.end());
                } catch (const std::exception& error) {
                    const std::lock_guard lock(mutex);
                    ADD_FAILURE() << error.what();
                }
            }
        };
        std::thread other(work);
        work();
        other.join();
        EXPECT_GT(chosen_, 0U) << "no instance was chosen";
        EXPECT_EQ(result.size(), chosen_);
        return result;
    }

  private:
    unsigned share_;
    std::mt19937_64 generator_ = test::make_generator();
    std::size_t offered_ = 0;
    std::size_t chosen_ = 0;
    std::map<std::string, CompileRequest> open_;
    std::vector<CompileRequest> requests_;
};

/// sm_80 has no bulk copies and less shared memory.
inline Machine machine_of(const std::string& arch) {
    return arch == "sm_80" ? Machine{163 * 1024, 164 * 1024, false} : Machine{};
}

/// Prints one line for all instances, and one for each that spills. Returns how many spill.
inline int report(const char* title, const std::vector<Resources>& all) {
    int most = 0;
    long sum = 0;
    int spilling = 0;
    for (const Resources& kernel : all) {
        EXPECT_GT(kernel.registers, 0) << "no registers in the log: " << kernel.expression;
        most = std::max(most, kernel.registers);
        sum += kernel.registers;
        if (kernel.spilled_bytes > 0) {
            ++spilling;
            std::printf("  spills %d bytes, %d registers: %s for %s\n", kernel.spilled_bytes,
                        kernel.registers, kernel.expression.c_str(), kernel.arch.c_str());
        }
    }
    std::printf("  %s: %zu kernels, registers %ld on average, %d at most, %d spill\n", title,
                all.size(), all.empty() ? 0 : sum / static_cast<long>(all.size()), most, spilling);
    return spilling;
}

}  // namespace quiver::cuda
