"""Quantized tiny checkpoints: compressed-tensors INT4, ModelOpt NVFP4, gpt-oss MXFP4, DeepSeek FP8, GPTQ and AWQ."""

import contextlib
import io
import json
import pathlib
import tempfile
import warnings

import numpy as np
import torch
from safetensors.torch import load_file

from . import ct, families, tiny
from .common import GOLDEN, save_json, save_tensors


def compressed_tensors(name, family="qwen3_moe", experts=".experts."):
    """(config, stored tensors, dequantized tensors) of a family with its routed experts in a compressed-tensors format."""
    config, source = tiny.read(tiny.MODELS / family)
    if family == "gpt_oss":
        source = gpt_oss_linears(source)
    quantization = ct.scheme(name)
    stored, dense = {}, {}
    for key, weight in source.items():
        if experts not in key or key.endswith(".bias"):
            stored[key] = dense[key] = weight
            continue
        module = key.removesuffix("weight")
        fused = [source[other] for other in fused_with(key)]
        parts = ct.compress(weight, quantization, fused)
        stored.update({module + part: tensor for part, tensor in parts.items()})
        dense[key] = ct.decompress(parts, quantization)
    config["quantization_config"] = ct.config(quantization, ignore=kept_modules(stored))
    return config, stored, dense


def gpt_oss_linears(source):
    """The fused experts as llm-compressor writes them: one linear layer with a bias an expert and projection."""
    result = {}
    for key, tensor in source.items():
        if ".experts." not in key:
            result[key] = tensor
            continue
        stem, proj = key.rsplit(".", 1)
        last = "bias" if proj.endswith("_bias") else "weight"
        for expert, part in enumerate(tensor):
            rows = part if last == "bias" else part.T
            if proj.startswith("gate_up"):
                result[f"{stem}.{expert}.gate_proj.{last}"] = rows[0::2].contiguous()
                result[f"{stem}.{expert}.up_proj.{last}"] = rows[1::2].contiguous()
            else:
                result[f"{stem}.{expert}.down_proj.{last}"] = rows.contiguous()
    return result


def kept_modules(stored):
    """Every module with an unquantized weight. Tools that see names only, not classes, take all others for quantized."""
    return sorted(key.removesuffix(".weight") for key in stored if key.endswith(".weight") and f"{key}_scale" not in stored)


def fused_with(key):
    """Gate and up of one expert share a global scale; every other weight is alone."""
    for gate, up in (("gate_proj", "up_proj"), ("w1", "w3")):
        if f".{gate}." in key or f".{up}." in key:
            return [key.replace(f".{up}.", f".{gate}."), key.replace(f".{gate}.", f".{up}.")]
    return [key]


def int4():
    config, stored, dense = compressed_tensors("int4_g32")
    tiny.write(tiny.MODELS / "qwen3_moe_int4", config, stored)
    tiny.write_expected("qwen3_moe_int4", config, dense)
    return f"qwen3_moe_int4: {len(stored)} tensors"


def modelopt_nvfp4_values(tensors, module):
    packed = tensors[module + "weight"]
    codes = torch.stack([packed & 15, packed >> 4], dim=-1).flatten(-2).long()
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    scale = tensors[module + "weight_scale"].float() * tensors[module + "weight_scale_2"]
    return (table[codes] * scale.repeat_interleave(16, dim=-1)).to(torch.bfloat16)


def modelopt_nvfp4(weight, fused):
    """ModelOpt's NVFP4 tensors of one linear layer; `fused` share one second-level scale."""
    from modelopt.torch.quantization.qtensor import NVFP4QTensor

    second = max(w.abs().amax() for w in fused).float() / (6 * 448)
    tensor, scale, _ = NVFP4QTensor.quantize(weight, 16, None, second)
    return {"weight": tensor._quantized_data, "weight_scale": scale, "weight_scale_2": second}


def modelopt_export(preset):
    """(config, hf_quant_config, tensors) of ModelOpt's own export of tiny Qwen3-MoE.

    The calibration tokens decide the activation scales only.
    """
    import modelopt.torch.quantization as mtq
    from modelopt.torch.export import export_hf_checkpoint

    model = tiny.load(tiny.MODELS / "qwen3_moe", dtype=torch.bfloat16)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        with torch.no_grad():
            mtq.quantize(model, getattr(mtq, preset), lambda m: m(tiny.TOKENS))
        with torch.inference_mode():
            export_hf_checkpoint(model, dtype=torch.bfloat16, export_dir=folder)
        with open(f"{folder}/hf_quant_config.json") as file:
            quant = json.load(file)
        config, tensors = tiny.read(pathlib.Path(folder))
    return config, quant, tensors


def nvfp4():
    config, quant, stored = modelopt_export("NVFP4_EXPERTS_ONLY_CFG")
    source_config, source = tiny.read(tiny.MODELS / "qwen3_moe")
    target = tiny.MODELS / "qwen3_moe_nvfp4"
    tiny.write(target, {**source_config, "quantization_config": config["quantization_config"]}, stored)
    save_json(target / "hf_quant_config.json", quant)
    dense = {key: modelopt_nvfp4_values(stored, key.removesuffix("weight")) if stored[key].dtype == torch.uint8 else stored[key] for key in source}
    tiny.write_expected("qwen3_moe_nvfp4", config, dense)
    return f"qwen3_moe_nvfp4: {len(stored)} tensors"


def configs():
    """How the two libraries spell the configuration of a format, without a checkpoint around it."""
    folder = GOLDEN / "configs"
    for name in ct.WEIGHTS:
        save_json(folder / f"compressed_tensors_{name}.json", ct.config(ct.scheme(name), ignore=["lm_head"]))
    for name, preset in {"nvfp4": "NVFP4_EXPERTS_ONLY_CFG", "w4a16_nvfp4": "W4A16_NVFP4_CFG", "fp8": "FP8_DEFAULT_CFG", "mxfp8": "MXFP8_DEFAULT_CFG"}.items():
        config, quant, _ = modelopt_export(preset)
        save_json(folder / f"modelopt_{name}.json", config["quantization_config"])
        save_json(folder / f"modelopt_{name}.hf_quant_config.json", quant)
    return f"configs: {len(list(folder.iterdir()))} files"


def gpt_oss_mxfp4():
    """Fused BF16 experts [E, in, out] become blocks [E, out, in/32, 16] and scales [E, out, in/32], as released."""
    config, source = tiny.read(tiny.MODELS / "gpt_oss")
    quantization = ct.scheme("mxfp4")
    stored, dense = {}, dict(source)
    for key, weight in source.items():
        if not key.endswith(("experts.gate_up_proj", "experts.down_proj")):
            stored[key] = weight
            continue
        experts = [ct.compress(w.T.contiguous(), quantization) for w in weight]
        blocks = torch.stack([e["weight_packed"] for e in experts])
        stored[f"{key}_blocks"] = blocks.unflatten(-1, (-1, 16))
        stored[f"{key}_scales"] = torch.stack([e["weight_scale"] for e in experts])
        dense[key] = torch.stack([ct.decompress(e, quantization).T for e in experts])
    config["quantization_config"] = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"],
    }
    tiny.write(tiny.MODELS / "gpt_oss_mxfp4", config, stored)
    tiny.write_expected("gpt_oss_mxfp4", config, dense)
    return f"gpt_oss_mxfp4: {len(stored)} tensors"


def fp8_block(weight, size=128):
    """(codes, scale, dequantized BF16): one float32 scale a block, smaller blocks at the edges."""
    rows, cols = weight.shape
    codes = torch.empty(rows, cols, dtype=torch.float8_e4m3fn)
    dense = torch.empty(rows, cols)
    scale = torch.empty(-(-rows // size), -(-cols // size))
    for i in range(scale.shape[0]):
        for j in range(scale.shape[1]):
            part = (slice(i * size, (i + 1) * size), slice(j * size, (j + 1) * size))
            block = weight[part].float()
            scale[i, j] = block.abs().max() / 448
            codes[part] = (block / scale[i, j]).clamp(-448, 448).to(torch.float8_e4m3fn)
            dense[part] = codes[part].float() * scale[i, j]
    return codes, scale, dense.to(torch.bfloat16)


def deepseek_fp8():
    """FP8 wherever DeepSeek-V3 has it: every projection of attention, dense layer, routed and shared experts."""
    config, source = tiny.read(tiny.MODELS / "deepseek_v3")
    stored, dense = {}, {}
    for key, weight in source.items():
        if "_proj" in key:
            stored[key], stored[f"{key}_scale_inv"], dense[key] = fp8_block(weight)
        else:
            stored[key] = dense[key] = weight
    config["quantization_config"] = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
    tiny.write(tiny.MODELS / "deepseek_v3_fp8", config, stored)
    tiny.write_expected("deepseek_v3_fp8", config, dense)
    return f"deepseek_v3_fp8: {len(stored)} tensors"


IN, OUT, GROUP = 256, 16, 128
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # the nibble i of a word holds column AWQ_ORDER[i]


def words(nibbles, order=range(8)):
    """Pack groups of eight values along the last axis into int32 words."""
    groups = nibbles.reshape(*nibbles.shape[:-1], -1, 8).astype(np.uint32)
    word = np.zeros(groups.shape[:-1], np.uint32)
    for place, column in enumerate(order):
        word |= groups[..., column] << np.uint32(4 * place)
    return word


def as_tensor(word):
    return torch.from_numpy(np.ascontiguousarray(word).view(np.int32))


def random_linear(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 16, (IN, OUT), dtype=np.uint8)
    zeros = rng.integers(0, 16, (IN // GROUP, OUT), dtype=np.uint8)
    zeros[:, :3] = [0, 15, 8]  # a zero of 0 borrows from its neighbour in GPTQ's stored form
    scales = rng.uniform(0.005, 0.02, (IN // GROUP, OUT)).astype(np.float16)
    return codes, zeros, scales, rng


def write_linear(name, quantization, tensors, weight):
    config = {"architectures": ["LinearOnly"], "model_type": "linear", "torch_dtype": "float16", "quantization_config": quantization}
    tiny.write(tiny.MODELS / name, config, tensors, generation=False)
    what = "dequantized weight [out, in] in float32"
    save_tensors(tiny.MODELS / "expected" / f"{name}.safetensors", {"linear.weight": torch.from_numpy(weight)}, {"what": what})
    return f"{name}: {len(tensors)} tensors"


def gptq(name, act_order, symmetric):
    codes, zeros, scales, rng = random_linear(seed=20 + act_order)
    if symmetric:
        zeros[:] = 8
    group = np.arange(IN) // GROUP
    if act_order:
        group = rng.permutation(group)
    stored_zeros = words(zeros) - np.uint32(0x11111111)  # version 1 stores zero - 1, subtracted from whole words
    tensors = {
        "linear.qweight": as_tensor(words(codes.T).T),
        "linear.qzeros": as_tensor(stored_zeros),
        "linear.scales": torch.from_numpy(scales),
        "linear.g_idx": torch.from_numpy(group.astype(np.int32)),
    }
    quantization = {
        "quant_method": "gptq",
        "bits": 4,
        "group_size": GROUP,
        "desc_act": bool(act_order),
        "sym": bool(symmetric),
        "checkpoint_format": "gptq",
        "damp_percent": 0.01,
        "static_groups": False,
        "true_sequential": True,
        "lm_head": False,
    }
    weight = scales[group].astype(np.float32) * (codes.astype(np.float32) - zeros[group])
    return write_linear(name, quantization, tensors, np.ascontiguousarray(weight.T))


def gptq_symmetric():
    return gptq("linear_gptq", act_order=0, symmetric=True)


def gptq_act_order():
    return gptq("linear_gptq_act_order", act_order=1, symmetric=False)


def awq():
    codes, zeros, scales, _ = random_linear(seed=22)
    tensors = {
        "linear.qweight": as_tensor(words(codes, AWQ_ORDER)),
        "linear.qzeros": as_tensor(words(zeros, AWQ_ORDER)),
        "linear.scales": torch.from_numpy(scales),
    }
    quantization = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm", "modules_to_not_convert": None}
    group = np.arange(IN) // GROUP
    weight = scales[group].astype(np.float32) * (codes.astype(np.float32) - zeros[group])
    return write_linear("linear_awq", quantization, tensors, np.ascontiguousarray(weight.T))


ALL = (int4, nvfp4, configs, gpt_oss_mxfp4, deepseek_fp8, gptq_symmetric, gptq_act_order, awq)
