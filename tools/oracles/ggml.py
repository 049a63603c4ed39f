"""Goldens from the gguf package: blocks and values of the ggml types."""

import numpy as np
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import NVFP4, dequantize, quantize

ENCODED = ("Q4_0", "Q4_1", "Q8_0", "MXFP4")


def rows(seed):
    """Float32 rows: normal ones, then one kind of trouble a row."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 0.05, (16, 256)).astype(np.float32)
    x[0, :64] = 0
    x[1] = 0
    x[2] = np.float32(1e-30)
    x[3] *= 64
    x[4, ::3] = -0.0
    x[5] = 0.03125
    x[6] = np.tile(np.float32([0.75, -0.75]), 128)
    x[7] = np.abs(x[7])
    x[8] = -np.abs(x[8])
    x[9] = np.linspace(-1, 1, 256, dtype=np.float32)
    x[10] *= np.float32(2.0**-20)
    x[11] = np.float32(2.0) ** (np.arange(256) % 24 - 16)
    return x


def encoded(name):
    kind = GGMLQuantizationType[name]
    x = rows(seed=6)
    with np.errstate(divide="ignore", invalid="ignore"):
        blocks = quantize(x, kind)
    values = dequantize(blocks, kind).astype(np.float32)
    return {"x": torch.from_numpy(x), "blocks": torch.from_numpy(blocks), "values": torch.from_numpy(values)}


def decoded(name, blocks):
    values = dequantize(blocks, GGMLQuantizationType[name]).astype(np.float32)
    return {"blocks": torch.from_numpy(blocks), "values": torch.from_numpy(values)}


def q4_k():
    """Random Q4_K blocks: any bits are valid apart from the two half-precision scales, drawn positive and small."""
    rng = np.random.default_rng(7)
    blocks = rng.integers(0, 256, (64, GGML_QUANT_SIZES[GGMLQuantizationType.Q4_K][1]), dtype=np.uint8)
    scales = rng.uniform(0, 0.01, (64, 2)).astype(np.float16)
    scales[0], scales[1] = 0, 6e-8  # zero and the smallest subnormal
    blocks[:, :4] = scales.view(np.uint8)
    return decoded("Q4_K", blocks)


def nvfp4():
    """Every scale byte 0..127 in every place; the package decodes this type but does not encode it."""
    rng = np.random.default_rng(8)
    blocks = rng.integers(0, 256, (128, GGML_QUANT_SIZES[GGMLQuantizationType.NVFP4][1]), dtype=np.uint8)
    blocks[:, :4] = (np.arange(128)[:, None] + 32 * np.arange(4)) % 128
    tensors = decoded("NVFP4", blocks)
    scales = np.concatenate([np.linspace(0, 0.02, 64), 2.0 ** np.linspace(-7, 9, 192)]).astype(np.float32)
    tensors["scale.x"] = torch.from_numpy(scales)
    tensors["scale.codes"] = torch.from_numpy(NVFP4.fp32_to_ue4m3(scales))
    return tensors


def goldens():
    for name in ENCODED:
        what = f"{name}: float32 rows x, their blocks, and the blocks' values"
        yield f"gguf_{name.lower()}", encoded(name), {"library": "gguf", "what": what}
    yield "gguf_q4_k", q4_k(), {"library": "gguf", "what": "Q4_K: random blocks and their values"}
    what = "NVFP4: blocks and values; scale.codes = the package's UE4M3 rounding of scale.x"
    yield "gguf_nvfp4", nvfp4(), {"library": "gguf", "what": what}
