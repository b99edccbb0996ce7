// SPDX-License-Identifier: BSD-3-Clause
// States of a solver in a folder: a file for each rank and a manifest, two generations of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/checkpoint/manifest.hpp"
#include "blockvec/context.hpp"
#include "blockvec/row_map.hpp"
#include "kernels/sparse/sparse_matrix.hpp"
#include "solvers/eigen/solver_state.hpp"

namespace quiver::apps {

struct CheckpointOptions {
    /// Folder to write to, every so many seconds.
    std::optional<std::string> write_to = {};
    double every = 300;
    /// Folder to go on from.
    std::optional<std::string> read_from = {};

    bool asked() const { return write_to || read_from; }
};

/// What can be said before the work begins: seconds that are none, a build without HDF5; on rank 0
/// folders that are not there or cannot be written, one that holds a checkpoint which would be
/// overwritten. Makes the folder. Throws InputError, UnsupportedError.
void check_checkpoint(const CheckpointOptions& options, int rank);

/// Rows, entries and a number that the entries have and hardly those of another matrix, whatever
/// the ranks. Collective. Cost: one pass over the entries.
template <class T>
std::string describe_matrix(const Comm& comm, const CsrRows<T>& rows);

/// Reads and verifies one generation. A file counts only if its size and checksum are those of the
/// manifest; ranks share that work. Collective. Throws, alike on all ranks, InputError for a file
/// or manifest that is missing or damaged, ShapeError for rows other than the map's or another
/// scalar.
template <class T>
class FolderState : public SavedState<T> {
  public:
    static std::unique_ptr<FolderState> open(const Comm& comm, const std::string& folder,
                                             std::int64_t generation, RowMap map);

    const CheckpointManifest& manifest() const { return manifest_; }
    void read(Context& ctx, const std::string& block, BlockView<T> x) const override;
    SmallMatrix<T> matrix(Context& ctx, const std::string& name, int rows, int cols) const override;

  private:
    FolderState(CheckpointManifest manifest, std::string folder, RowMap map);
    std::string path(int rank) const;

    CheckpointManifest manifest_;
    std::string folder_;
    RowMap map_;
};

/// Checkpoints of one run. What it writes is complete or not there: every rank's file is on the
/// disk before all agree, the manifest is renamed into place last, and the generation before stays
/// until then. A disk that refuses costs that checkpoint and a notice, not the run.
template <class T>
class CheckpointFolder : public Checkpoint<T> {
  public:
    /// Looks for the newest generation that is whole, with a notice of each that is not.
    /// Collective. Throws InputError, alike on all ranks, where there is none, or where it is of
    /// another problem; no generation at all is a beginning where the same folder is written to.
    CheckpointFolder(Context& ctx, const CheckpointOptions& options, RowMap map,
                     CheckpointIdentity identity);

    bool due() override;
    const SavedState<T>* saved() const override { return saved_.get(); }
    void save(Context& ctx, const SolverState<T>& state) override;

  private:
    using Clock = std::chrono::steady_clock;

    void find_saved(Context& ctx, const std::string& folder);
    FileSum write_rank_file(Context& ctx, const SolverState<T>& state, std::int64_t generation);
    CheckpointManifest describe(const SolverState<T>& state, std::int64_t generation,
                                std::vector<FileSum> files) const;
    void write_manifest(const CheckpointManifest& manifest) const;
    void wind_clock();

    /// Empty: nothing is written.
    std::string folder_;
    double every_;
    RowMap map_;
    CheckpointIdentity identity_;
    std::unique_ptr<FolderState<T>> saved_;
    /// The newest number in the folder, and the newest that is whole; -1: none.
    std::int64_t newest_ = -1;
    std::int64_t whole_ = -1;
    /// Why the last checkpoint was not written.
    std::string trouble_;
    Clock::time_point next_;
};

}  // namespace quiver::apps
