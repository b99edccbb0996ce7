// SPDX-License-Identifier: BSD-3-Clause
// Comm: a duplicated MPI communicator, or a serial one that never calls MPI.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "blockvec/error.hpp"
#include "blockvec/mpi.hpp"
#include "blockvec/scalar.hpp"

namespace quiver {

/// Cheap to copy: all copies share one duplicate of the caller's communicator. The last copy frees
/// the duplicate, unless MPI_Finalize was called before. Reductions call MPI_Allreduce on host
/// memory: the same ranks and values give the same bits, on every rank.
class Comm {
  public:
    /// A serial Comm of one process; never calls MPI, which need not be initialised.
    Comm() = default;
    /// Duplicates `parent` (collective over `parent`). Throws CommError if MPI is not initialised.
    explicit Comm(MPI_Comm parent);
    /// A move is a copy, so that a Comm that was moved from stays valid.
    Comm(const Comm&) = default;
    Comm& operator=(const Comm&) = default;
    ~Comm() = default;

    int rank() const { return rank_; }
    int size() const { return size_; }
    /// The duplicate; MPI_COMM_NULL for a serial Comm.
    MPI_Comm handle() const;

    /// values <- elementwise sum over the ranks, in place. V: one of s, d, c, z, or std::int64_t.
    template <class V>
    void sum(std::span<V> values) const;
    /// values <- elementwise maximum over the ranks, in place. V: double or std::int64_t.
    template <class V>
    void max(std::span<V> values) const;
    std::int64_t sum(std::int64_t value) const;
    std::int64_t max(std::int64_t value) const;
    double max(double value) const;
    /// The sum of `value` over the ranks on this rank's node. Every call splits the communicator by
    /// node: use it for set-up only.
    double sum_on_node(double value) const;
    /// Returns the values of all ranks, in rank order, on every rank.
    std::vector<std::int64_t> gather(std::int64_t value) const;
    void broadcast(void* data, std::size_t bytes, int root) const;
    void barrier() const;

    /// Runs `phase` on this rank, then agrees over all ranks whether any rank threw. If so, every
    /// rank throws the error of the lowest failing rank, marked collective; a rank whose error is
    /// already collective throws that one. Costs one all-reduce if no rank threw. `phase` may
    /// communicate only if it fails on all ranks alike or on none; a Context of one process in it
    /// may fail on one rank.
    ///
    /// For tests: with `QUIVER_FAULT=N@R` in the environment, rank R throws MemoryError after the
    /// phase of the N-th agreement of this communicator (counted from 1); with `N@R:kill`, rank R
    /// kills itself there with SIGKILL.
    template <class F>
    void agree(F&& phase) const {
        ErrorKind kind = ErrorKind::none;
        std::string message;
        try {
            phase();
            fail_on_request();
        } catch (const Error& error) {
            if (!error.collective()) {
                kind = error.kind();
                message = error.what();
            } else {
                // The mark may come from a Context of this process alone.
                tell(error.kind(), error.what());
                throw;  // the class of the error is kept
            }
        } catch (const std::bad_alloc&) {
            kind = ErrorKind::memory;
            message = "out of host memory";
        } catch (const std::exception& error) {
            kind = ErrorKind::other;
            message = error.what();
        }
        settle(kind, message);
    }

    /// Ends every process of the communicator with the exit status `status` (MPI_Abort).
    [[noreturn]] void abort(int status) const;

  private:
    /// Agrees on this rank's outcome; throws the error of the lowest failing rank on all ranks.
    void settle(ErrorKind kind, const std::string& message) const;
    /// Takes part in settle(), but throws nothing: the caller throws its own error.
    void tell(ErrorKind kind, const std::string& message) const;
    /// Injects the fault of QUIVER_FAULT after the agreement that it names.
    void fail_on_request() const;

    /// The state that all copies share.
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

/// The MPI datatype of V: the four scalars, std::int64_t, int, char.
template <class V>
MPI_Datatype mpi_type();

/// Throws CommError "what: text of MPI" unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* what);

}  // namespace quiver
