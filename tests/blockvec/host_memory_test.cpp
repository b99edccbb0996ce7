// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/host_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "blockvec/error.hpp"
#include "tests/support/address_space_limit.hpp"
#include "tests/support/sanitizers.hpp"

namespace quiver::test {
namespace {

double all_memory() {
    return static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<double>(sysconf(_SC_PAGE_SIZE));
}

TEST(HostMemory, IsSomeOfWhatTheMachineHas) {
    EXPECT_GT(available_host_bytes(), 1e6);
    EXPECT_LE(available_host_bytes(), all_memory());
}

TEST(HostMemory, AddressSpaceEndsAtItsLimit) {
    if (address_space_is_vast) {
        GTEST_SKIP() << "the sanitizer's address space cannot be limited";
    }
    const AddressSpaceLimit limit(rlim_t{256} << 20);
    EXPECT_LE(available_address_space(), 256.0 * (1 << 20));
    EXPECT_GT(available_address_space(), 200.0 * (1 << 20));
}

TEST(HostMemory, IsRefusedBeyondTheLimitOnTheAddressSpace) {
    if (address_space_is_vast) {
        GTEST_SKIP() << "the sanitizer's address space cannot be limited";
    }
    const Comm comm(MPI_COMM_WORLD);
    const AddressSpaceLimit limit(rlim_t{256} << 20);
    try {
        require_host_memory(comm, 300.0 * (1 << 20), "the test takes");
        FAIL() << "granted";
    } catch (const MemoryError& error) {
        EXPECT_EQ(
            std::string(error.what()).find("the test takes 315 MB of memory on this rank; its"), 0u)
            << error.what();
    }
}

TEST(HostMemory, IsGrantedWhereItSuffices) {
    const Comm comm(MPI_COMM_WORLD);
    EXPECT_NO_THROW(require_host_memory(comm, 1000, "a kilobyte takes"));
}

TEST(HostMemory, IsRefusedOnAllRanksIfTheNodeHasTooLittle) {
    const Comm comm(MPI_COMM_WORLD);
    // The memory may hold one rank's request, but not those of all ranks.
    const double share = 1.2 * all_memory() / comm.size();
    try {
        require_host_memory(comm, share, "the test takes");
        FAIL() << "granted";
    } catch (const MemoryError& error) {
        EXPECT_TRUE(error.collective() || comm.size() == 1);
        EXPECT_EQ(std::string(error.what()).find("the test takes "), 0u) << error.what();
        EXPECT_NE(std::string(error.what()).find(" MB left"), std::string::npos) << error.what();
    }
}

TEST(Comm, SumsOverTheRanksOfTheNode) {
    const Comm comm(MPI_COMM_WORLD);
    // The tests run on one node.
    EXPECT_EQ(comm.sum_on_node(comm.rank() + 1.0), comm.size() * (comm.size() + 1) / 2.0);
    EXPECT_EQ(Comm().sum_on_node(3.5), 3.5);
}

}  // namespace
}  // namespace quiver::test
