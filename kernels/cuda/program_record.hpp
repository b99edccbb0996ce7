// SPDX-License-Identifier: BSD-3-Clause
// The text form of a compiled program, used in files of the cache and in packs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "kernels/cuda/embedded_sources.hpp"
#include "kernels/cuda/nvrtc_compile.hpp"

namespace quiver::cuda {

/// A hash of one of `sources` and of all of them that it includes, directly or not. Keys contain
/// it, so that a change of one kernel leaves the records of the others valid.
std::uint64_t hash_with_includes(std::span<const EmbeddedSource> sources, const std::string& name);

/// The text that identifies a request with everything its program depends on: equal keys give equal
/// programs.
std::string key_of(const CompileRequest& request);
/// The name of a key's record. It consists of two hashes, because with a collision two programs
/// would replace each other repeatedly.
std::string record_name(const std::string& key);

/// Creates a record; it contains the key and a checksum.
std::string to_record(const std::string& key, const CompiledProgram& program);
/// Returns nothing unless the record is complete, belongs to the key, and has `expressions` kernel
/// names.
std::optional<CompiledProgram> from_record(const std::string& record, const std::string& key,
                                           std::size_t expressions);

/// Writes a file under a temporary name and renames it, so that a reader sees either the complete
/// file or none. `mode`: the file permissions. Returns false if the folder is not writable.
bool write_whole(const std::string& folder, const std::string& path, const std::string& content,
                 unsigned mode = 0600);

}  // namespace quiver::cuda
