// SPDX-License-Identifier: BSD-3-Clause
// Properties of sanitizers that matter to tests.
#pragma once

// clang has __has_feature; g++ 12 defines macros instead.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define QUIVER_TEST_SHADOW_MEMORY
#endif
#if __has_feature(thread_sanitizer)
#define QUIVER_TEST_SHADOW_FILE
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QUIVER_TEST_SHADOW_MEMORY
#endif

namespace quiver::test {

/// True with the address and thread sanitizers, which reserve more address space than any limit of
/// a test allows.
#ifdef QUIVER_TEST_SHADOW_MEMORY
inline constexpr bool address_space_is_vast = true;
#else
inline constexpr bool address_space_is_vast = false;
#endif

/// False with clang's thread sanitizer: a program maps a file of half a megabyte when it starts,
/// and fails under a smaller limit on files.
#ifdef QUIVER_TEST_SHADOW_FILE
inline constexpr bool files_may_be_limited = false;
#else
inline constexpr bool files_may_be_limited = true;
#endif

}  // namespace quiver::test
