// SPDX-License-Identifier: BSD-3-Clause
#include "solvers/abft/operand.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "blockvec/scalar_list.hpp"
#include "blockvec/shape.hpp"
#include "kernels/column_ops.hpp"

namespace quiver {
namespace {

const char* outcome(const OperationGuard& guard, bool mended) {
    return !guard.writes() ? "found" : mended ? "mended" : "not mended";
}

}  // namespace

template <class T>
Operand<T>::Operand(Context& ctx, const OperationGuard& guard, const char* operation,
                    BlockView<T> operand, const Checksum<T>* known)
    : block(operand) {
    const int log_chunk = guard.options.log_chunk;
    if (known == nullptr) {
        sums = Checksum<T>(ctx, block, {}, log_chunk, guard.words());
        return;
    }
    const std::int64_t chunks = checksum_chunks(block.rows, log_chunk);
    const bool fits = block.empty() ||
                      (known->log_chunk() == log_chunk && known->columns() == block.cols &&
                       known->chunks() == chunks &&
                       known->first_row(chunks - 1) + known->chunk_rows(chunks - 1) == block.rows);
    require_shape(fits, operation, "the known checksums belong to another block", [&] {
        return describe(block) + ", chunks of 2^" + std::to_string(log_chunk) + " rows; " +
               std::to_string(known->chunks()) + " chunks of 2^" +
               std::to_string(known->log_chunk()) + " rows, " + std::to_string(known->columns()) +
               " columns";
    });
    sums = *known;
}

template <class T>
OperandRepair Operand<T>::repair(Context& ctx, const OperationGuard& guard) {
    const int log_chunk = guard.options.log_chunk;
    OperandRepair repair;
    const Checksum<T> now(ctx, block, {}, log_chunk);
    for (const FaultyChunk& fault : now.changed_since(sums)) {
        const bool restored = guard.writes() && restore(ctx, block, fault, sums);
        ++repair.found;
        repair.mended += restored ? 1 : 0;
        guard.tell(ctx, "operand", outcome(guard, restored));
    }
    if (guard.writes() && repair.lost()) {
        sums = Checksum<T>(ctx, block, {}, log_chunk);
    }
    return repair;
}

template <class T>
Kept<T>::Kept(Context& ctx, const BlockView<T>& source)
    : scratch_(ctx.memory(), memory_kind(ctx.place()),
               static_cast<std::size_t>(source.rows) * static_cast<std::size_t>(source.cols) *
                   sizeof(T)),
      source_(source),
      view_(scratch_.template as<T>(), source.rows, source.cols, source.cols, ctx.place()) {
    copy(ctx, BlockView<const T>(source), view_);
}

template <class T>
void Kept<T>::put_back(Context& ctx) const {
    copy(ctx, BlockView<const T>(view_), source_);
}

GuardedArray::GuardedArray(Context& ctx, const char* name, void* data, std::size_t bytes)
    : name_(name),
      data_(data),
      bytes_(bytes),
      parity_(static_cast<std::size_t>(parity_pieces(bytes)) * parity_numbers) {
    accept(ctx);
}

OperandRepair GuardedArray::repair(Context& ctx, const OperationGuard& guard) {
    OperandRepair repair;
    std::vector<std::uint64_t> now(parity_.size());
    parity(ctx, data_, bytes_, now);
    for (ParityFault fault = find_fault(parity_, now); fault.piece >= 0;
         fault = find_fault(parity_, now, fault.piece + 1)) {
        ++repair.found;
        const bool mends = guard.writes() && fault.word >= 0;
        if (mends) {
            unsigned char mask[8];
            std::memcpy(mask, &fault.bits, sizeof(mask));
            const std::size_t first = static_cast<std::size_t>(fault.word) * 8;
            flip_bits(ctx, static_cast<char*>(data_) + first,
                      std::span<const unsigned char>(mask).first(
                          std::min<std::size_t>(8, bytes_ - first)));
            ++repair.mended;
        }
        guard.tell(ctx, name_, outcome(guard, mends));
    }
    return repair;
}

#define QUIVER_INSTANTIATE(T)   \
    template struct Operand<T>; \
    template class Kept<T>;
QUIVER_FOR_EACH_SCALAR(QUIVER_INSTANTIATE)
#undef QUIVER_INSTANTIATE

}  // namespace quiver
