// SPDX-License-Identifier: BSD-3-Clause
// The main() of every test program. After each test the ranks exchange whether it failed: a failed
// assertion on one rank fails the program on all ranks, and no rank starts the next test early.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include <gtest/gtest.h>
#include <mpi.h>

#include "tests/support/test_context.hpp"

namespace quiver::test {

Place test_place() {
    const char* place = std::getenv("QUIVER_TEST_PLACE");
    return place != nullptr && std::string(place) == "device" ? Place::device : Place::host;
}

Context make_context() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const Device device = test_place() == Place::host
                              ? Device::host()
                              : Device::cuda(rank % std::max(1, device::count()));
    return Context(Comm(MPI_COMM_WORLD), device);
}

namespace {

std::uint64_t seed_of_test() {
    if (const char* given = std::getenv("QUIVER_TEST_SEED")) {
        return std::strtoull(given, nullptr, 10);
    }
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    return std::hash<std::string>{}(std::string(info->test_suite_name()) + info->name());
}

/// Prints the seed of a failed test, and makes the program fail on all ranks.
class CollectiveListener : public ::testing::EmptyTestEventListener {
    void OnTestEnd(const ::testing::TestInfo& info) override {
        int failed = info.result()->Failed() ? 1 : 0;
        int anywhere = failed;
        MPI_Allreduce(&failed, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (failed != 0) {
            std::printf("  seed: QUIVER_TEST_SEED=%llu\n",
                        static_cast<unsigned long long>(seed_of_test()));
        }
        if (anywhere != 0 && failed == 0) {
            failed_elsewhere = true;
        }
    }

  public:
    bool failed_elsewhere = false;
};

}  // namespace

std::mt19937_64 make_generator() {
    return std::mt19937_64(seed_of_test());
}

int case_step() {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const bool is_repetition =
        ranks > 1 || test_place() == Place::device || std::getenv("QUIVER_VECTORS") != nullptr;
    return is_repetition && std::getenv("QUIVER_TEST_ALL_CASES") == nullptr ? 5 : 1;
}

bool is_host_repetition() {
    return case_step() > 1 && test_place() == Place::host;
}

}  // namespace quiver::test

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    ::testing::InitGoogleTest(&argc, argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    auto* collective = new quiver::test::CollectiveListener;
    if (rank != 0) {
        delete listeners.Release(listeners.default_result_printer());
    }
    listeners.Append(collective);
    int status = 0;
    if (quiver::test::test_place() == quiver::Place::device && quiver::device::count() == 0) {
        std::printf("[  SKIPPED ] all tests: %s\n", quiver::device::why_none().c_str());
    } else {
        status = RUN_ALL_TESTS();
        const auto& unit = *::testing::UnitTest::GetInstance();
        if (unit.test_to_run_count() - unit.skipped_test_count() <= 0) {
            std::printf("no test was executed\n");
            status = 1;
        }
        if (collective->failed_elsewhere) {
            status = 1;
        }
        if (status != 0 && rank != 0) {
            for (int i = 0; i < unit.total_test_suite_count(); ++i) {
                const auto* suite = unit.GetTestSuite(i);
                for (int j = 0; j < suite->total_test_count(); ++j) {
                    const auto* info = suite->GetTestInfo(j);
                    for (int k = 0; k < info->result()->total_part_count(); ++k) {
                        const auto& part = info->result()->GetTestPartResult(k);
                        if (part.failed()) {
                            std::printf("rank %d, %s.%s: %s:%d: %s\n", rank, suite->name(),
                                        info->name(), part.file_name(), part.line_number(),
                                        part.message());
                            break;
                        }
                    }
                }
            }
        }
    }
    MPI_Finalize();
    return status;
}
