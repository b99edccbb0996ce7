// SPDX-License-Identifier: BSD-3-Clause
// Saves states of a solver in a folder: one file for each rank and a manifest. The folder keeps two
// generations.
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
    /// The folder to write to, every `every` seconds.
    std::optional<std::string> write_to = {};
    double every = 300;
    /// The folder to resume from.
    std::optional<std::string> read_from = {};

    bool asked() const { return write_to || read_from; }
};

/// Checks the options before the solve, and creates the folder. Throws UnsupportedError in a build
/// without HDF5. Throws InputError for an invalid number of seconds and, on rank 0, for folders
/// that do not exist or cannot be written, and for a folder whose checkpoint would be overwritten.
void check_checkpoint(const CheckpointOptions& options, int rank);

/// A text with the numbers of rows and entries and a hash of the entries. It does not depend on the
/// number of ranks or on the order of the entries. Collective. Cost: one pass over the entries.
template <class T>
std::string describe_matrix(const Comm& comm, const CsrRows<T>& rows);

/// A generation read back. open() verifies that the size and the checksum of each file are those of
/// the manifest; the ranks divide this work. Collective. Throws on all ranks: InputError for a file
/// or manifest that is missing or damaged, ShapeError if the number of rows is not that of the map,
/// or the scalar is another one.
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

/// The checkpoints of one run. A checkpoint is either complete or absent: all ranks' files are on
/// the disk before the manifest is renamed into place, and the previous generation remains. If a
/// checkpoint cannot be written, the run continues with a notice.
template <class T>
class CheckpointFolder : public Checkpoint<T> {
  public:
    /// Finds the newest complete generation in the folder to resume from, if there is such a
    /// folder; a notice names the incomplete generations that are newer. Collective. Throws
    /// InputError on all ranks if no generation is complete, or if that generation belongs to
    /// another problem. A folder without generations is allowed if the run also writes to it.
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
    void schedule_next_save();

    /// The folder to write to; empty if the run writes no checkpoints.
    std::string folder_;
    double every_;
    RowMap map_;
    CheckpointIdentity identity_;
    std::unique_ptr<FolderState<T>> saved_;
    /// The newest generation in the folder to write to, and the newest complete one; -1: none.
    std::int64_t newest_ = -1;
    std::int64_t whole_ = -1;
    /// Why the last attempt to write a checkpoint failed; empty if it succeeded.
    std::string trouble_;
    Clock::time_point next_;
};

}  // namespace quiver::apps
