// SPDX-License-Identifier: BSD-3-Clause
// Quiver inside another program, which owns the communicator, the stream and the memory.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <mpi.h>

#include "blockvec/context.hpp"
#include "blockvec/interop.hpp"
#include "kernels/tsmttsm.hpp"
#include "tests/support/test_context.hpp"

namespace quiver {
namespace {

/// The surrounding program: a communicator of half of the ranks, a stream on a device, and the
/// elements of two blocks with padded rows.
class Host {
  public:
    static constexpr int m = 5;
    static constexpr int n = 3;
    static constexpr std::int64_t ld = 8;

    Host() {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
        MPI_Comm_rank(comm, &my_rank);
        MPI_Comm_size(comm, &ranks);
        if (test::test_place() == Place::device) {
            gpu = rank % device::count();
            device::select(gpu);
            stream = device::create_stream();
        }
    }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;
    ~Host() {
        if (stream != nullptr) {
            device::destroy_stream(stream);
        }
        MPI_Comm_free(&comm);
    }

    static std::int64_t rows(int rank) { return 40 + 7 * rank; }
    /// Small integers, so that every sum is exact.
    static double a(int rank, std::int64_t i, int j) {
        return static_cast<double>((i * 3 + j * 5 + rank) % 7 - 3);
    }
    static double b(int rank, std::int64_t i, int j) {
        return static_cast<double>((i * 2 + j + 4 * rank) % 5 - 2);
    }

    MPI_Comm comm = MPI_COMM_NULL;
    int my_rank = 0;
    int ranks = 1;
    int gpu = 0;
    Stream stream = nullptr;
};

/// A block in memory that the program allocates.
class Block {
  public:
    Block(const Host& host, double (*value)(int, std::int64_t, int), int cols) : host_(host) {
        std::vector<double> filled(static_cast<std::size_t>(Host::rows(host.my_rank) * Host::ld),
                                   -99.0);
        for (std::int64_t i = 0; i < Host::rows(host.my_rank); ++i) {
            for (int j = 0; j < cols; ++j) {
                filled[static_cast<std::size_t>(i * Host::ld + j)] = value(host.my_rank, i, j);
            }
        }
        if (host.stream == nullptr) {
            memory_ = std::move(filled);
            pointer = memory_.data();
        } else {
            const std::size_t bytes = filled.size() * sizeof(double);
            pointer = static_cast<double*>(device::allocate(bytes, host.stream));
            device::copy(pointer, filled.data(), bytes, host.stream);
            device::synchronize(host.stream);
        }
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() {
        if (host_.stream != nullptr) {
            device::deallocate(pointer, host_.stream);
        }
    }
    double* pointer = nullptr;

  private:
    const Host& host_;
    std::vector<double> memory_;
};

TEST(Embedding, ATsmttsmOnTheCallersCommunicatorStreamAndPointers) {
    const Host host;
    const Block a(host, Host::a, Host::m);
    const Block b(host, Host::b, Host::n);
    {
        const bool on_device = host.stream != nullptr;
        Context ctx(Comm(host.comm),
                    on_device ? Device::cuda(host.gpu, host.stream) : Device::host());
        EXPECT_EQ(ctx.stream(), host.stream);
        const Place place = on_device ? Place::device : Place::host;
        const std::int64_t rows = Host::rows(host.my_rank);
        const BlockView<const double> view_a(a.pointer, rows, Host::m, Host::ld, place);
        const BlockView<const double> view_b(b.pointer, rows, Host::n, Host::ld, place);
        std::vector<double> c(Host::m * Host::n, -1.0);
        tsmttsm(ctx, 2.0, view_a, view_b, 0.0, host_view(c.data(), Host::m, Host::n));

        for (int i = 0; i < Host::m; ++i) {
            for (int j = 0; j < Host::n; ++j) {
                double expected = 0;
                for (int rank = 0; rank < host.ranks; ++rank) {
                    for (std::int64_t row = 0; row < Host::rows(rank); ++row) {
                        expected += 2 * Host::a(rank, row, i) * Host::b(rank, row, j);
                    }
                }
                EXPECT_EQ(c[static_cast<std::size_t>(i * Host::n + j)], expected) << i << ' ' << j;
            }
        }
    }
    // The caller can still use the communicator and the stream.
    int sum = 1;
    EXPECT_EQ(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, host.comm), MPI_SUCCESS);
    EXPECT_EQ(sum, host.ranks);
    if (host.stream != nullptr) {
        EXPECT_NO_THROW(device::synchronize(host.stream));
    }
}

}  // namespace
}  // namespace quiver
