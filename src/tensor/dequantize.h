/// Stored blocks to floats: the scalar reference that every faster path is tested against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/block_type.h"

namespace holmes::tensor {

/// Writes `num_elements` floats from the blocks at `src`.
/// Shapes: num_elements is a multiple of InfoOf(type).block_elements (DCHECK); src holds
/// num_elements / block_elements * block_bytes bytes, any
///         alignment; dst [num_elements], no overlap with src.
/// Values: bit-equal to the format's own definition; every product of a scale and a quant is exact
/// in float, so only the subtraction or addition of a
///         minimum rounds, and fused or separate instructions agree.
/// Cost:   one pass; no allocation. Thread-safe.
/// Source: https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c (layouts), checked
/// against the Python package `gguf`.
void DequantizeRow(BlockType type, const std::byte* src, std::int64_t num_elements, float* dst);

}  // namespace holmes::tensor
