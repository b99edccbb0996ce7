// SPDX-License-Identifier: BSD-3-Clause
// Includes mpi.h. A build without MPI (QUIVER_ENABLE_MPI=OFF) instead defines here the part of MPI
// that Quiver uses, for one process: a reduction or an exchange copies the data that the process
// sends to itself, and a message to another process is an error.
#pragma once

#include "blockvec/config.hpp"

#if QUIVER_HAVE_MPI

#include <mpi.h>

#else

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace quiver {

// NOLINTBEGIN(readability-identifier-naming): the names of MPI
enum class MPI_Comm { null, world };
/// The size of an element in bytes.
using MPI_Datatype = int;
enum class MPI_Op { sum, max, min };
enum class MPI_Request { null };
enum class MPI_Info { null };
struct MPI_Status {
    int MPI_SOURCE = 0;
};

inline constexpr MPI_Comm MPI_COMM_NULL = MPI_Comm::null;
inline constexpr MPI_Comm MPI_COMM_WORLD = MPI_Comm::world;
inline constexpr int MPI_SUCCESS = 0;
inline constexpr int no_other_process = 1;
inline constexpr int MPI_COMM_TYPE_SHARED = 0;
inline constexpr int MPI_ERRORS_RETURN = 0;
inline constexpr int MPI_THREAD_FUNNELED = 1;
inline constexpr int MPI_UNDEFINED = -1;
inline constexpr int MPI_MAX_ERROR_STRING = 64;
inline constexpr int MPI_MAX_LIBRARY_VERSION_STRING = 64;
inline constexpr MPI_Info MPI_INFO_NULL = MPI_Info::null;
inline constexpr MPI_Request MPI_REQUEST_NULL = MPI_Request::null;
inline constexpr MPI_Status* MPI_STATUS_IGNORE = nullptr;
inline constexpr MPI_Status* MPI_STATUSES_IGNORE = nullptr;
inline constexpr MPI_Datatype MPI_DATATYPE_NULL = 0;
inline constexpr MPI_Datatype MPI_BYTE = 1;
inline constexpr MPI_Datatype MPI_CHAR = 1;
inline constexpr MPI_Datatype MPI_INT = 4;
inline constexpr MPI_Datatype MPI_INT64_T = 8;
inline constexpr MPI_Datatype MPI_FLOAT = 4;
inline constexpr MPI_Datatype MPI_DOUBLE = 8;
inline constexpr MPI_Datatype MPI_C_FLOAT_COMPLEX = 8;
inline constexpr MPI_Datatype MPI_C_DOUBLE_COMPLEX = 16;
inline constexpr MPI_Op MPI_SUM = MPI_Op::sum;
inline constexpr MPI_Op MPI_MAX = MPI_Op::max;
inline constexpr MPI_Op MPI_MIN = MPI_Op::min;
/// MPI_IN_PLACE, the address of this mark, means that the input is already in the result.
inline char in_place_mark = 0;
inline void* const MPI_IN_PLACE = &in_place_mark;

/// Copies `count` elements that the process sends to itself.
inline int copy_to_self(const void* from, void* to, int count, MPI_Datatype type) {
    if (from != MPI_IN_PLACE && from != to && count > 0) {
        std::memmove(to, from, static_cast<std::size_t>(count) * static_cast<std::size_t>(type));
    }
    return MPI_SUCCESS;
}

inline int MPI_Init_thread(int* /*argc*/, char*** /*argv*/, int wanted, int* provided) {
    *provided = wanted;
    return MPI_SUCCESS;
}
inline int MPI_Initialized(int* flag) {
    *flag = 1;
    return MPI_SUCCESS;
}
inline int MPI_Finalize() {
    return MPI_SUCCESS;
}
inline int MPI_Finalized(int* flag) {
    *flag = 0;
    return MPI_SUCCESS;
}
[[noreturn]] inline int MPI_Abort(MPI_Comm /*comm*/, int status) {
    std::_Exit(status);
}
inline int MPI_Error_string(int /*code*/, char* text, int* length) {
    *length = std::snprintf(text, MPI_MAX_ERROR_STRING, "this build has no MPI: one process");
    return MPI_SUCCESS;
}
inline int MPI_Get_library_version(char* text, int* length) {
    *length = std::snprintf(text, MPI_MAX_LIBRARY_VERSION_STRING, "none (one process)");
    return MPI_SUCCESS;
}
inline int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
    *copy = comm;
    return MPI_SUCCESS;
}
inline int MPI_Comm_free(MPI_Comm* comm) {
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}
inline int MPI_Comm_set_errhandler(MPI_Comm /*comm*/, int /*handler*/) {
    return MPI_SUCCESS;
}
inline int MPI_Comm_rank(MPI_Comm /*comm*/, int* rank) {
    *rank = 0;
    return MPI_SUCCESS;
}
inline int MPI_Comm_size(MPI_Comm /*comm*/, int* size) {
    *size = 1;
    return MPI_SUCCESS;
}
inline int MPI_Comm_split(MPI_Comm comm, int colour, int /*key*/, MPI_Comm* part) {
    *part = colour == MPI_UNDEFINED ? MPI_COMM_NULL : comm;
    return MPI_SUCCESS;
}
inline int MPI_Comm_split_type(MPI_Comm comm, int /*type*/, int /*key*/, MPI_Info /*info*/,
                               MPI_Comm* part) {
    *part = comm;
    return MPI_SUCCESS;
}
inline int MPI_Barrier(MPI_Comm /*comm*/) {
    return MPI_SUCCESS;
}
inline int MPI_Bcast(void* /*data*/, int /*count*/, MPI_Datatype /*type*/, int /*root*/,
                     MPI_Comm /*comm*/) {
    return MPI_SUCCESS;
}
inline int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op /*op*/,
                         MPI_Comm /*comm*/) {
    return copy_to_self(from, to, count, type);
}
inline int MPI_Allgather(const void* from, int count, MPI_Datatype type, void* to, int /*to_count*/,
                         MPI_Datatype /*to_type*/, MPI_Comm /*comm*/) {
    return copy_to_self(from, to, count, type);
}
inline int MPI_Allgatherv(const void* from, int count, MPI_Datatype type, void* to,
                          const int* /*counts*/, const int* /*offsets*/, MPI_Datatype /*to_type*/,
                          MPI_Comm /*comm*/) {
    return copy_to_self(from, to, count, type);
}
inline int MPI_Alltoall(const void* from, int count, MPI_Datatype type, void* to, int /*to_count*/,
                        MPI_Datatype /*to_type*/, MPI_Comm /*comm*/) {
    return copy_to_self(from, to, count, type);
}
inline int MPI_Alltoallv(const void* from, const int* counts, const int* offsets, MPI_Datatype type,
                         void* to, const int* /*to_counts*/, const int* to_offsets,
                         MPI_Datatype to_type, MPI_Comm /*comm*/) {
    return copy_to_self(static_cast<const char*>(from) + std::ptrdiff_t{offsets[0]} * type,
                        static_cast<char*>(to) + std::ptrdiff_t{to_offsets[0]} * to_type, counts[0],
                        type);
}
inline int MPI_Send(const void* /*data*/, int /*count*/, MPI_Datatype /*type*/, int /*to*/,
                    int /*tag*/, MPI_Comm /*comm*/) {
    return no_other_process;
}
inline int MPI_Recv(void* /*data*/, int /*count*/, MPI_Datatype /*type*/, int /*from*/, int /*tag*/,
                    MPI_Comm /*comm*/, MPI_Status* /*status*/) {
    return no_other_process;
}
inline int MPI_Isend(const void* /*data*/, int /*count*/, MPI_Datatype /*type*/, int /*to*/,
                     int /*tag*/, MPI_Comm /*comm*/, MPI_Request* /*request*/) {
    return no_other_process;
}
inline int MPI_Irecv(void* /*data*/, int /*count*/, MPI_Datatype /*type*/, int /*from*/,
                     int /*tag*/, MPI_Comm /*comm*/, MPI_Request* /*request*/) {
    return no_other_process;
}
inline int MPI_Wait(MPI_Request* /*request*/, MPI_Status* /*status*/) {
    return MPI_SUCCESS;
}
inline int MPI_Waitall(int /*count*/, MPI_Request* /*requests*/, MPI_Status* /*statuses*/) {
    return MPI_SUCCESS;
}
inline int MPI_Get_count(const MPI_Status* /*status*/, MPI_Datatype /*type*/, int* count) {
    *count = 0;
    return MPI_SUCCESS;
}
inline int MPI_Type_contiguous(int count, MPI_Datatype type, MPI_Datatype* made) {
    *made = count * type;
    return MPI_SUCCESS;
}
inline int MPI_Type_commit(MPI_Datatype* /*type*/) {
    return MPI_SUCCESS;
}
inline int MPI_Type_free(MPI_Datatype* type) {
    *type = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}
// NOLINTEND(readability-identifier-naming)

}  // namespace quiver

#endif
