// SPDX-License-Identifier: BSD-3-Clause
#include "blockvec/comm.hpp"

#include <complex>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blockvec/error.hpp"

namespace quiver {
namespace {

TEST(Agree, DoesNotThrowIfNoRankFails) {
    const Comm comm(MPI_COMM_WORLD);
    int calls = 0;
    comm.agree([&] { ++calls; });
    EXPECT_EQ(calls, 1);
}

TEST(Agree, ThrowsTheErrorOfOneRankOnAll) {
    const Comm comm(MPI_COMM_WORLD);
    for (int culprit = 0; culprit < comm.size(); ++culprit) {
        try {
            comm.agree([&] {
                if (comm.rank() == culprit) {
                    throw InputError("file.mtx", 17, "from rank " + std::to_string(culprit));
                }
            });
            FAIL() << "nothing was thrown";
        } catch (const InputError& error) {
            EXPECT_EQ(error.what(), "file.mtx:17: from rank " + std::to_string(culprit));
            EXPECT_TRUE(error.collective());
        }
    }
}

TEST(Agree, ThrowsTheErrorOfTheLowestRankThatFailed) {
    const Comm comm(MPI_COMM_WORLD);
    const int first = comm.size() > 1 ? 1 : 0;
    try {
        comm.agree([&] {
            if (comm.rank() >= first) {
                throw ShapeError(std::to_string(comm.rank()));
            }
        });
        FAIL() << "nothing was thrown";
    } catch (const ShapeError& error) {
        EXPECT_EQ(error.what(), std::to_string(first));
    }
}

template <class E, class Thrown>
void expect_kind(const Comm& comm, ErrorKind kind, Thrown thrown) {
    try {
        comm.agree([&] {
            if (comm.rank() == comm.size() - 1) {
                throw thrown;
            }
        });
        FAIL() << "nothing was thrown";
    } catch (const E& error) {
        EXPECT_EQ(error.kind(), kind);
        EXPECT_TRUE(error.collective());
    }
}

TEST(Agree, KeepsTheClassOfTheError) {
    const Comm comm(MPI_COMM_WORLD);
    expect_kind<ShapeError>(comm, ErrorKind::shape, ShapeError("x"));
    expect_kind<InputError>(comm, ErrorKind::input, InputError("x"));
    expect_kind<UnsupportedError>(comm, ErrorKind::unsupported, UnsupportedError("x"));
    expect_kind<NumericalError>(comm, ErrorKind::numerical, NumericalError("x"));
    expect_kind<MemoryError>(comm, ErrorKind::memory, MemoryError("x"));
    expect_kind<DeviceError>(comm, ErrorKind::device, DeviceError("x"));
    expect_kind<CommError>(comm, ErrorKind::comm, CommError("x"));
    expect_kind<MemoryError>(comm, ErrorKind::memory, std::bad_alloc());
    expect_kind<Error>(comm, ErrorKind::other, std::logic_error("x"));
}

TEST(Agree, LetsACollectiveErrorThrough) {
    const Comm comm(MPI_COMM_WORLD);
    EXPECT_THROW(comm.agree([&] {
        comm.agree([&] {
            if (comm.rank() == 0) {
                throw InputError("inner");
            }
        });
    }),
                 InputError);
    // No rank still waits in a reduction:
    EXPECT_EQ(comm.sum(1), comm.size());
}

/// A Context of one process marks its errors collective, but the other ranks do not know of them.
TEST(Agree, TellsAllRanksOfAnErrorOfOneProcess) {
    const Comm comm(MPI_COMM_WORLD);
    const int last = comm.size() - 1;
    try {
        comm.agree([&] {
            if (comm.rank() == last) {
                Comm().agree([] { throw MemoryError("alone"); });
            }
        });
        FAIL() << "rank " << comm.rank() << " goes on";
    } catch (const MemoryError& error) {
        EXPECT_TRUE(error.collective());
        EXPECT_STREQ(error.what(), "alone");
    }
    EXPECT_EQ(comm.sum(1), comm.size());
}

TEST(Comm, ReducesOverAllRanks) {
    const Comm comm(MPI_COMM_WORLD);
    const int size = comm.size();
    const int triangle = size * (size - 1) / 2;
    std::vector<std::complex<float>> complex{{static_cast<float>(comm.rank()), 1}};
    comm.sum(std::span<std::complex<float>>(complex));
    EXPECT_EQ(complex[0],
              std::complex<float>(static_cast<float>(triangle), static_cast<float>(size)));
    std::vector<double> real{static_cast<double>(comm.rank()), 2.0};
    comm.sum(std::span<double>(real));
    EXPECT_EQ(real[0], triangle);
    EXPECT_EQ(real[1], 2.0 * size);
    EXPECT_EQ(comm.max(static_cast<std::int64_t>(comm.rank())), size - 1);
    EXPECT_EQ(comm.max(-0.5 * comm.rank()), 0.0);
    std::vector<std::int64_t> expected(static_cast<std::size_t>(size));
    std::iota(expected.begin(), expected.end(), 100);
    EXPECT_EQ(comm.gather(100 + comm.rank()), expected);
    int word = comm.rank() == size - 1 ? 42 : 0;
    comm.broadcast(&word, sizeof(word), size - 1);
    EXPECT_EQ(word, 42);
}

TEST(Comm, SerialOneNeedsNoOther) {
    const Comm comm;
    EXPECT_EQ(comm.size(), 1);
    EXPECT_EQ(comm.handle(), MPI_COMM_NULL);
    EXPECT_EQ(comm.sum(7), 7);
    EXPECT_EQ(comm.gather(3), std::vector<std::int64_t>{3});
    EXPECT_THROW(comm.agree([] { throw InputError("alone"); }), InputError);
}

TEST(Comm, DuplicatesTheCallersCommunicator) {
    const Comm comm(MPI_COMM_WORLD);
    const Comm copy = comm;  // NOLINT(performance-unnecessary-copy-initialization): tests the copy
    int relation = 0;
    MPI_Comm_compare(comm.handle(), MPI_COMM_WORLD, &relation);
    EXPECT_EQ(relation, MPI_CONGRUENT);
    EXPECT_EQ(copy.handle(), comm.handle());
}

TEST(Comm, CodesOfMpiBecomeErrors) {
    EXPECT_NO_THROW(check_mpi(MPI_SUCCESS, "MPI_Call"));
    try {
        check_mpi(MPI_ERR_COMM, "MPI_Call");
        FAIL() << "nothing was thrown";
    } catch (const CommError& error) {
        EXPECT_EQ(std::string(error.what()).find("MPI_Call: "), 0u);
    }
}

// NOLINTBEGIN(bugprone-use-after-move,performance-move-const-arg): tests the state after a move
TEST(Comm, StaysValidOnceMovedFrom) {
    Comm first(MPI_COMM_WORLD);
    const Comm second = std::move(first);
    EXPECT_EQ(first.handle(), second.handle());
    EXPECT_EQ(first.sum(1), second.size());
}
// NOLINTEND(bugprone-use-after-move,performance-move-const-arg)

}  // namespace
}  // namespace quiver
