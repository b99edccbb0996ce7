// SPDX-License-Identifier: BSD-3-Clause
// Tests plans stored on disk: they are found again, damaged plans are ignored, and a store that
// fails causes no error. Needs no GPU.
#include "kernels/cuda/plan_store.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace quiver::cuda {
namespace {

namespace fs = std::filesystem;

class PlanStoreTest : public ::testing::Test {
  protected:
    PlanStoreTest() {
        std::string name = (fs::temp_directory_path() / "quiver_plans_XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("no temporary folder");
        }
        folder = name;
    }
    ~PlanStoreTest() override { fs::remove_all(folder); }

    static std::string read(const std::string& path) {
        std::ostringstream text;
        text << std::ifstream(path, std::ios::binary).rdbuf();
        return text.str();
    }
    static std::string found(const PlanStore& store, std::uint64_t key) {
        const std::string* plan = store.find(key);
        return plan == nullptr ? "nothing" : *plan;
    }

    std::string folder;
    static constexpr std::uint64_t key = 0x0123456789abcdefu;
};

TEST_F(PlanStoreTest, FindsAPlanAgain) {
    PlanStore first(folder, "seven");
    EXPECT_EQ(first.find(key), nullptr);
    first.add(key, "fma 1x1x1 rows 8x3");
    first.add(key + 1, "none");
    EXPECT_EQ(found(first, key), "fma 1x1x1 rows 8x3");
    const PlanStore second(folder, "seven");
    EXPECT_EQ(found(second, key), "fma 1x1x1 rows 8x3");
    EXPECT_EQ(found(second, key + 1), "none");
    EXPECT_EQ(found(second, key + 2), "nothing");
    // A later line replaces an earlier one.
    first.add(key, "mma");
    EXPECT_EQ(found(PlanStore(folder, "seven"), key), "mma");
}

TEST_F(PlanStoreTest, AnotherVersionFindsNoPlan) {
    PlanStore(folder, "seven").add(key, "fma");
    EXPECT_EQ(PlanStore(folder, "eight").find(key), nullptr);
    EXPECT_EQ(PlanStore::model_version(), PlanStore::model_version());
    EXPECT_NE(PlanStore::model_version(), 0u);
}

TEST_F(PlanStoreTest, DamagedLinesAreIgnored) {
    PlanStore store(folder, "seven");
    store.add(key, "fma 4x4");
    store.add(key + 1, "mma 2x2");
    const std::string whole = read(store.path());
    // Damages every byte except the last line end, one at a time. A plan is found unchanged or not
    // at all.
    for (std::size_t i = 0; i + 1 < whole.size(); ++i) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ 1);
        std::ofstream(store.path(), std::ios::binary | std::ios::trunc) << damaged;
        const PlanStore again(folder, "seven");
        int known = 0;
        for (const std::uint64_t k : {key, key + 1}) {
            const std::string plan = found(again, k);
            known += plan == "nothing" ? 0 : 1;
            EXPECT_TRUE(plan == "nothing" || plan == found(store, k)) << i << ": " << plan;
        }
        EXPECT_LE(known, 1) << i;
    }
    // Truncates the file at every length. A plan is found unchanged or not at all.
    for (std::size_t length = 0; length < whole.size(); ++length) {
        std::ofstream(store.path(), std::ios::binary | std::ios::trunc) << whole.substr(0, length);
        const PlanStore again(folder, "seven");
        for (const std::uint64_t k : {key, key + 1}) {
            const std::string plan = found(again, k);
            EXPECT_TRUE(plan == "nothing" || plan == found(store, k)) << length << ": " << plan;
        }
    }
}

TEST_F(PlanStoreTest, ProcessesAppendSideBySide) {
    constexpr int writers = 4;
    constexpr int lines = 50;
    for (int w = 0; w < writers; ++w) {
        if (::fork() == 0) {
            PlanStore store(folder, "seven");
            for (int i = 0; i < lines; ++i) {
                store.add(static_cast<std::uint64_t>(w * lines + i), "plan " + std::to_string(i));
            }
            ::_exit(0);
        }
    }
    for (int w = 0; w < writers; ++w) {
        int status = -1;
        ::wait(&status);
        EXPECT_EQ(status, 0);
    }
    const PlanStore all(folder, "seven");
    for (int k = 0; k < writers * lines; ++k) {
        EXPECT_EQ(found(all, static_cast<std::uint64_t>(k)), "plan " + std::to_string(k % lines));
    }
}

TEST_F(PlanStoreTest, WorksWithoutAFolder) {
    for (const std::string& where : {std::string(), folder + "/missing"}) {
        PlanStore store(where, "seven");
        store.add(key, "fma");
        EXPECT_EQ(found(store, key), "fma");
        EXPECT_EQ(PlanStore(where, "seven").find(key), nullptr);
    }
}

}  // namespace
}  // namespace quiver::cuda
