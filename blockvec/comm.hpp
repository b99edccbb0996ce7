// SPDX-License-Identifier: BSD-3-Clause
// Comm: a duplicated MPI communicator, or none at all for a program of one process.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <mpi.h>

#include "blockvec/error.hpp"
#include "blockvec/scalar.hpp"

namespace quiver {

/// Cheap to copy: copies share one duplicate of the caller's communicator, freed with the last of
/// them (or left to MPI when MPI_Finalize came first). Sums are by MPI_Allreduce on host memory:
/// for the same ranks and values the same bits, on every rank.
class Comm {
  public:
    /// One process; makes no call of MPI, which need not be initialised.
    Comm() = default;
    /// Duplicates `parent` (collective over it). MPI must be initialised.
    explicit Comm(MPI_Comm parent);

    int rank() const { return rank_; }
    int size() const { return size_; }
    /// The duplicate; MPI_COMM_NULL for a serial Comm.
    MPI_Comm handle() const;

    /// values <- elementwise sum over the ranks, in place. Scalars s, d, c, z and std::int64_t.
    template <class V>
    void sum(std::span<V> values) const;
    /// values <- elementwise maximum over the ranks. double and std::int64_t.
    template <class V>
    void max(std::span<V> values) const;
    std::int64_t sum(std::int64_t value) const;
    std::int64_t max(std::int64_t value) const;
    double max(double value) const;
    /// The sum over the ranks that share this rank's node. Makes a communicator: for set-up.
    double sum_on_node(double value) const;
    /// One value from every rank, in rank order, on every rank.
    std::vector<std::int64_t> gather(std::int64_t value) const;
    void broadcast(void* data, std::size_t bytes, int root) const;
    void barrier() const;

    /// Runs `phase` on this rank, then tells all ranks whether it threw anywhere; if so, every rank
    /// throws the error of the lowest such rank, marked collective. One all-reduce when all is
    /// well. `phase` may communicate only if it fails alike on all ranks or not at all.
    ///
    /// For tests: with `QUIVER_FAULT=N@R` in the environment, rank R fails after the phase of this
    /// communicator's N-th agreement (from 1) as if memory had not sufficed; with `N@R:kill` it
    /// kills itself there.
    template <class F>
    void agree(F&& phase) const {
        ErrorKind kind = ErrorKind::none;
        std::string message;
        try {
            phase();
            fail_on_request();
        } catch (const Error& error) {
            if (error.collective()) {
                throw;
            }
            kind = error.kind();
            message = error.what();
        } catch (const std::bad_alloc&) {
            kind = ErrorKind::memory;
            message = "out of host memory";
        } catch (const std::exception& error) {
            kind = ErrorKind::other;
            message = error.what();
        }
        settle(kind, message);
    }

    /// Ends every process of the communicator with this exit status (MPI_Abort).
    [[noreturn]] void abort(int status) const;

  private:
    void settle(ErrorKind kind, const std::string& message) const;
    void fail_on_request() const;

    /// What all copies share.
    struct Shared {
        MPI_Comm handle = MPI_COMM_NULL;
        std::int64_t agreements = 0;
        std::int64_t failing_agreement = 0;
        bool failing_kills = false;

        ~Shared();
    };
    std::shared_ptr<Shared> shared_;
    int rank_ = 0;
    int size_ = 1;
};

/// MPI's name of a type: the four scalars, half words as bytes, std::int64_t, int, char.
template <class V>
MPI_Datatype mpi_type();

/// Throws CommError "what: MPI's text" unless code is MPI_SUCCESS.
void check_mpi(int code, const char* what);

}  // namespace quiver
