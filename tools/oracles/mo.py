"""Goldens from NVIDIA ModelOpt: a linear layer calibrated, exported as its checkpoint writer would, and dequantized."""

import contextlib
import io
import warnings

import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import modelopt.torch.quantization as mtq
    from modelopt.torch.export.quant_utils import get_quantization_format
    from modelopt.torch.export.unified_export_hf import _export_quantized_weight
    from modelopt.torch.quantization.qtensor import FP8QTensor, MXFP4QTensor, MXFP8QTensor, NVFP4QTensor

from .common import block_weights, sample_weights

CONFIGS = {
    "nvfp4": "W4A16_NVFP4_CFG",
    "mxfp4": "MXFP4_DEFAULT_CFG",
    "mxfp8": "MXFP8_DEFAULT_CFG",
    "fp8_tensor": "FP8_DEFAULT_CFG",
    "fp8_channel": "FP8_PER_CHANNEL_PER_TOKEN_CFG",
    "fp8_block": "FP8_2D_BLOCKWISE_WEIGHT_ONLY_CFG",
    "int4_awq": "INT4_BLOCKWISE_WEIGHT_ONLY_CFG",
}


class OneLinear(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.proj = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
        self.proj.weight.data.copy_(weight)

    def forward(self, x):
        return self.proj(x)


def export(weight, config):
    """Stored tensors of one linear layer, and the name of its format."""
    model = OneLinear(weight)
    ones = torch.ones(1, weight.shape[1], dtype=weight.dtype)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
        warnings.simplefilter("ignore")
        mtq.quantize(model, getattr(mtq, config), lambda m: m(ones))
        kind = get_quantization_format(model.proj)
        _export_quantized_weight(model.proj, weight.dtype)
    stored = {"weight": model.proj.weight.data}
    for name in ("weight_scale", "weight_scale_2"):
        if getattr(model.proj, name, None) is not None:
            stored[name] = getattr(model.proj, name)
    return stored, kind


def int4_values(stored, group):
    """ModelOpt has no decoder for its exported INT4: rows 2i and 2i+1 lie in the low and high nibble, two's complement."""
    packed = stored["weight"]
    nibbles = torch.stack([packed & 15, packed >> 4], dim=1).flatten(0, 1).to(torch.int8)
    codes = torch.where(nibbles > 7, nibbles - 16, nibbles)
    return codes.float() * stored["weight_scale"].float().repeat_interleave(group, dim=-1)


def dequantize(name, x, stored):
    """What its tensor classes return in the weight's type."""
    scale = stored["weight_scale"]
    if name == "nvfp4":
        tensor = NVFP4QTensor(x.shape, x.dtype, stored["weight"])
        return tensor.dequantize(scale=scale, double_scale=stored["weight_scale_2"], block_sizes={-1: 16})
    if name == "mxfp4":
        return MXFP4QTensor(x.shape, x.dtype, stored["weight"]).dequantize(scale=scale, block_sizes={-1: 32})
    if name == "mxfp8":
        return MXFP8QTensor(x.shape, x.dtype, stored["weight"]).dequantize(scale=scale)
    if name == "int4_awq":
        return int4_values(stored, 128)
    tensor = FP8QTensor(x.shape, x.dtype, stored["weight"])
    if name == "fp8_block":
        return tensor.dequantize(scale=scale[:, 0, :, 0] if scale.dim() == 4 else scale, block_sizes={-1: 128, -2: 128})
    return tensor.dequantize(scale=scale[:, None] if name == "fp8_channel" else scale)


def golden(name):
    tensors, kind = {}, None
    for case, x in (block_weights() if name == "fp8_block" else sample_weights()).items():
        stored, kind = export(x, CONFIGS[name])
        tensors[f"{case}.x"] = x
        tensors.update({f"{case}.{key}": value for key, value in stored.items()})
        tensors[f"{case}.dequant"] = dequantize(name, x, stored)
    return tensors, kind


def goldens():
    for name in CONFIGS:
        tensors, kind = golden(name)
        what = f"{kind}: CASE.x calibrated by maximum and exported; CASE.dequant by its tensor class"
        yield f"modelopt_{name}", tensors, {"library": "nvidia-modelopt", "what": what}
