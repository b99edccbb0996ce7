// SPDX-License-Identifier: BSD-3-Clause
#include "apps/cpu_binding.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <sched.h>

#include "apps/rank_weights.hpp"
#include "blockvec/comm.hpp"
#include "blockvec/error.hpp"

namespace quiver::apps {
namespace {

using Cores = std::vector<int>;

TEST(CpuList, IsReadAsTheSystemWritesIt) {
    EXPECT_EQ(parse_cpu_list("0-3,8"), (Cores{0, 1, 2, 3, 8}));
    EXPECT_EQ(parse_cpu_list("7"), Cores{7});
    EXPECT_EQ(parse_cpu_list("4-5,0-1,5"), (Cores{0, 1, 4, 5}));
    for (const char* none : {"", "a", "3-", "-3", "5-2", "1-2x", "0-999999", "1,,2"}) {
        EXPECT_EQ(parse_cpu_list(none), Cores{}) << none;
    }
}

TEST(CpuShares, AreNeighboursAndEachCoreIsInOne) {
    Cores cores;
    for (int core = 10; core < 27; ++core) {
        cores.push_back(core);
    }
    for (int parts = 1; parts <= 17; ++parts) {
        Cores all;
        for (int index = 0; index < parts; ++index) {
            const Cores share = share_of(cores, index, parts);
            EXPECT_GE(std::ssize(share), 17 / parts);
            EXPECT_LE(std::ssize(share), 17 / parts + 1);
            all.insert(all.end(), share.begin(), share.end());
        }
        EXPECT_EQ(all, cores);
    }
    EXPECT_EQ(share_of(cores, 3, 18), cores);
}

TEST(CpuBinding, GivesTheRanksOfANodeDifferentCores) {
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    const int bound = bind_near_gpu(MPI_COMM_WORLD, "");
    cpu_set_t after;
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    sched_setaffinity(0, sizeof before, &before);
    if (size == 1) {
        EXPECT_EQ(bound, 0);
        EXPECT_NE(CPU_EQUAL(&before, &after), 0);
    } else if (bound > 0) {
        const int cores = CPU_COUNT(&before);
        EXPECT_EQ(bound, CPU_COUNT(&after));
        EXPECT_GE(bound, std::max(1, cores < size ? cores : cores / size));
    }
}

TEST(RankWeights, AreEqualMeasuredOrGiven) {
    const Comm comm(MPI_COMM_WORLD);
    const Device host = Device::host(1);
    EXPECT_TRUE(rank_weights(comm, host, "auto").empty()) << "all ranks are on the host";
    EXPECT_TRUE(rank_weights(comm, host, "equal").empty());
    const auto measured = rank_weights(comm, host, "measured");
    EXPECT_EQ(std::ssize(measured), comm.size() == 1 ? 0 : comm.size());
    for (const double weight : measured) {
        EXPECT_GT(weight, 1e7) << "bytes per second";
    }
    if (comm.size() > 1) {
        std::string list = "0.5";
        std::vector<double> expected{0.5};
        for (int rank = 1; rank < comm.size(); ++rank) {
            list += ",2e1";
            expected.push_back(20);
        }
        EXPECT_EQ(rank_weights(comm, host, list), expected);
        for (const std::string& wrong :
             {list + ",1", std::string("1"), list + "x", std::string()}) {
            EXPECT_THROW(rank_weights(comm, host, wrong), InputError) << wrong;
        }
        std::string zeros = "0";
        for (int rank = 1; rank < comm.size(); ++rank) {
            zeros += ",0";
        }
        EXPECT_THROW(rank_weights(comm, host, zeros), InputError);
        EXPECT_THROW(rank_weights(comm, host, "-1" + list.substr(3)), InputError);
    }
}

}  // namespace
}  // namespace quiver::apps
