// SPDX-License-Identifier: BSD-3-Clause
// A compiled program as text: what a file of the cache and an entry of a pack hold.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "kernels/cuda/nvrtc_compile.hpp"

namespace quiver::cuda {

/// The text that belongs to a request: all that its program depends on. Equal keys, equal programs.
std::string key_of(const CompileRequest& request);
/// The name of a key's record: two hashes, since a collision would make two programs push each
/// other out.
std::string record_name(const std::string& key);

/// The record has the key itself and a checksum.
std::string to_record(const std::string& key, const CompiledProgram& program);
/// Nothing unless the record is whole, the key's, and has the names of `expressions` kernels.
std::optional<CompiledProgram> from_record(const std::string& record, const std::string& key,
                                           std::size_t expressions);

/// Writes a file aside and renames it, so that a reader sees all of it or nothing. `mode`: who may
/// read it. False where the folder cannot be written.
bool write_whole(const std::string& folder, const std::string& path, const std::string& content,
                 unsigned mode = 0600);

}  // namespace quiver::cuda
