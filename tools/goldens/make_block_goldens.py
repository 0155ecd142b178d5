#!/usr/bin/env python3
"""Golden values for tests/tensor: random blocks of every format, dequantised by the Python package `gguf`.

    make_block_goldens.py tests/tensor/data

blocks.bin: per type a record of little-endian uint32 ggml_type, uint32 num_bytes, uint32 num_floats, the bytes, the floats.
"""
import struct
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf import quants

TYPES = [T.F32, T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K]
# Where each block keeps its half-precision scales: random bytes there would mostly be NaN or huge.
HALVES = {T.Q8_0: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}


def main():
    random = np.random.RandomState(20)
    with open(sys.argv[1] + "/blocks.bin", "wb") as out:
        for kind in TYPES:
            elements, size = GGML_QUANT_SIZES[kind]
            count = 4 if elements >= 256 else 8 if elements > 1 else 64
            blocks = random.randint(0, 256, (count, size), dtype=np.uint8)
            if kind in HALVES:
                for at in HALVES[kind]:
                    scale = random.uniform(-1, 1, count).astype(np.float16)
                    scale[0] = np.float16(3e-6)  # a subnormal half
                    blocks[:, at:at + 2] = scale[:, None].view(np.uint8)
            elif kind == T.F16:
                values = (random.randn(count) * 100).astype(np.float16)
                values[:5] = [0.0, -0.0, 6e-8, 65504.0, -np.inf]
                blocks = values[:, None].view(np.uint8)
            else:
                values = random.randn(count).astype(np.float32)
                values[:3] = [0.0, -0.0, np.inf]
                blocks = values[:, None].view(np.uint8) if kind == T.F32 else (values.view(np.uint32) >> 16).astype(np.uint16)[:, None].view(np.uint8)
            data = np.ascontiguousarray(blocks.reshape(1, -1))
            if kind == T.F32:
                floats = data.view(np.float32)
            elif kind == T.F16:
                floats = data.view(np.float16).astype(np.float32)
            else:
                floats = quants.dequantize(data, kind).astype(np.float32)
            assert np.isnan(floats).sum() == 0, kind
            out.write(struct.pack("<III", int(kind), data.size, floats.size) + data.tobytes() + floats.tobytes())


if __name__ == "__main__":
    main()
