"""Dequantize a checkpoint folder with the field's own decoders: names and shapes of the BF16 source, values in BF16.

Each reader takes (config, tensors) and returns the dense tensors. They are independent of nibble: what it writes is
only right if these agree with it.
"""

import re

import torch

from . import mo
from .tiny import read


def compressed_tensors(folder):
    from compressed_tensors.entrypoints.convert.converters import CompressedTensorsDequantizer

    _, tensors = read(folder)
    dense = CompressedTensorsDequantizer(str(folder)).process(tensors)
    left = [name for name in dense if name.endswith(("_packed", "_scale", "_shape", "_zero_point"))]
    if left:
        raise ValueError(f"{folder}: not decoded, its config does not cover them: {left[:4]}")
    return gpt_oss_fused(dense)


def gpt_oss_fused(tensors):
    """One tensor an expert with a bias (how llm-compressor writes gpt-oss) -> the fused transposed tensors of the source."""
    pattern = re.compile(r"(.*\.mlp\.experts)\.(\d+)\.(gate|up|down)_proj\.(weight|bias)")
    parts = {match.groups(): tensors[name] for name in tensors if (match := pattern.fullmatch(name))}
    if not any(last == "bias" for *_, last in parts):
        return tensors
    fused = {name: tensor for name, tensor in tensors.items() if not pattern.fullmatch(name)}
    for prefix in sorted({key[0] for key in parts}):
        count = len({key[1] for key in parts if key[0] == prefix})
        stack = lambda proj, last: torch.stack([parts[prefix, str(e), proj, last] for e in range(count)])
        for last, suffix in (("weight", ""), ("bias", "_bias")):
            gate_up = torch.stack([stack("gate", last), stack("up", last)], dim=2).flatten(1, 2)
            down = stack("down", last)
            transpose = (lambda t: t.transpose(1, 2).contiguous()) if last == "weight" else (lambda t: t)
            fused[f"{prefix}.gate_up_proj{suffix}"] = transpose(gate_up)
            fused[f"{prefix}.down_proj{suffix}"] = transpose(down)
    return fused


MODELOPT = {  # stored (weight dtype, scale dtype) -> the name of its golden format
    (torch.uint8, torch.float8_e4m3fn): "nvfp4",
    (torch.uint8, torch.uint8): "mxfp4",
    (torch.float8_e4m3fn, torch.uint8): "mxfp8",
}


def modelopt_format(weight, scale):
    kind = MODELOPT.get((weight.dtype, scale.dtype))
    if kind or weight.dtype != torch.float8_e4m3fn:
        return kind or "int4_awq"
    return {0: "fp8_tensor", 1: "fp8_channel"}.get(scale.dim(), "fp8_block")


STACK_PARTS = ("_weight_scale", "_weight_scale_2", "_input_scale")


def modelopt_stack(name, tensors):
    """A stack of modules that compute with (K, N): quantized along K, then laid back. Each matrix as a linear layer's."""
    dense = []
    for codes, scale in zip(tensors[name], tensors[f"{name}_weight_scale"]):
        stored = {"weight": codes.T.contiguous(), "weight_scale": scale.T.contiguous(), "weight_scale_2": tensors[f"{name}_weight_scale_2"]}
        shape = torch.empty(codes.shape[1], 2 * codes.shape[0], dtype=torch.bfloat16, device="meta")
        dense.append(mo.dequantize("nvfp4", shape, stored).to(torch.bfloat16).T)
    return torch.stack(dense).contiguous()


def modelopt(folder):
    _, tensors = read(folder)
    dense = {}
    for name, weight in tensors.items():
        if f"{name}_weight_scale" in tensors:
            dense[name] = modelopt_stack(name, tensors)
            continue
        if any(name.endswith(part) and name.removesuffix(part) in tensors for part in STACK_PARTS):
            continue
        module, _, last = name.rpartition(".")
        if last in ("weight_scale", "weight_scale_2", "input_scale"):
            continue
        scale = tensors.get(f"{module}.weight_scale")
        if last != "weight" or scale is None:
            dense[name] = weight
            continue
        stored = {"weight": weight, "weight_scale": scale, "weight_scale_2": tensors.get(f"{module}.weight_scale_2")}
        kind = modelopt_format(weight, scale)
        width = weight.shape[1] * (2 if kind in ("nvfp4", "mxfp4") else 1)
        shape = torch.empty(weight.shape[0], width, dtype=torch.bfloat16, device="meta")
        dense[name] = mo.dequantize(kind, shape, stored).to(torch.bfloat16)
    return dense


def gpt_oss(folder):
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    _, tensors = read(folder)
    dense = {name: tensor for name, tensor in tensors.items() if not name.endswith(("_blocks", "_scales"))}
    for name in tensors:
        if name.endswith("_blocks"):
            stem = name.removesuffix("_blocks")
            dense[stem] = convert_moe_packed_tensors(tensors[name], tensors[f"{stem}_scales"])
    return dense


def fp8(folder):
    """The arithmetic of transformers' decoder, block by block: it finds the block size by dividing the shape by the
    scale's, which is wrong at partial blocks (160 rows and 2 scales are blocks of 128 and 32, not of 80)."""
    config, tensors = read(folder)
    high, wide = config["quantization_config"].get("weight_block_size") or (1 << 30, 1 << 30)
    dense = {}
    for name, tensor in tensors.items():
        scale = tensors.get(f"{name}_scale_inv")
        if name.endswith("_scale_inv"):
            continue
        if scale is not None:
            rows, cols = tensor.shape
            scale = scale.float().repeat_interleave(min(high, rows), 0)[:rows].repeat_interleave(min(wide, cols), 1)[:, :cols]
            tensor = (tensor.float() * scale).to(torch.bfloat16)
        dense[name] = tensor
    return dense


def plain(folder):
    return read(folder)[1]


READERS = {"compressed-tensors": compressed_tensors, "modelopt": modelopt, "mxfp4": gpt_oss, "fp8": fp8, None: plain}


def method(config):
    return config.get("quantization_config", {}).get("quant_method")


def dequantized(folder):
    config, _ = read(folder)
    return READERS[method(config)](folder)
