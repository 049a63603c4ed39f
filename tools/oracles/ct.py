"""Goldens from compressed-tensors: its own qparams, compressors and decompressors.

Producers find the minimum and maximum of each group in the weight's own type and hand them to `calculate_qparams`;
that step is the only one written here, since the library leaves it to its callers.
"""

import compressed_tensors
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.format import infer_module_format
from compressed_tensors.config import CompressionFormat
from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme, QuantizationStatus
from compressed_tensors.quantization.utils.helpers import calculate_qparams, generate_gparam, maybe_pad_tensor_for_block_quant

from .common import block_weights, sample_weights

WEIGHTS = {
    "int4_g32": dict(num_bits=4, type="int", strategy="group", group_size=32, symmetric=True),
    "int4_g128": dict(num_bits=4, type="int", strategy="group", group_size=128, symmetric=True),
    "int4_channel": dict(num_bits=4, type="int", strategy="channel", symmetric=True),
    "int4_g32_asym": dict(num_bits=4, type="int", strategy="group", group_size=32, symmetric=False),
    "int4_g128_asym": dict(num_bits=4, type="int", strategy="group", group_size=128, symmetric=False),
    "nvfp4": dict(num_bits=4, type="float", strategy="tensor_group", group_size=16, symmetric=True, scale_dtype=torch.float8_e4m3fn),
    "mxfp4": dict(num_bits=4, type="float", strategy="group", group_size=32, symmetric=True, scale_dtype=torch.uint8),
    "mxfp8": dict(num_bits=8, type="float", strategy="group", group_size=32, symmetric=True, scale_dtype=torch.uint8),
    "fp8_tensor": dict(num_bits=8, type="float", strategy="tensor", symmetric=True),
    "fp8_channel": dict(num_bits=8, type="float", strategy="channel", symmetric=True),
    "fp8_block": dict(num_bits=8, type="float", strategy="block", block_structure=[128, 128], symmetric=True),
}
ACTIVATIONS = {  # FP8 weights without quantized activations would be stored as "naive-quantized"
    "fp8_tensor": dict(num_bits=8, type="float", symmetric=True, dynamic=True, strategy="tensor"),
    "fp8_channel": dict(num_bits=8, type="float", symmetric=True, dynamic=True, strategy="token"),
    "fp8_block": dict(num_bits=8, type="float", symmetric=True, dynamic=True, strategy="group", group_size=128),
}


def scheme(name, targets=("Linear",)):
    activations = ACTIVATIONS.get(name)
    result = QuantizationScheme(
        targets=list(targets),
        weights=QuantizationArgs(**WEIGHTS[name]),
        input_activations=QuantizationArgs(**activations) if activations else None,
    )
    result.format = infer_module_format(torch.nn.Linear, result)
    return result


def config(quantization, ignore):
    """The `quantization_config` that the library writes into config.json."""
    whole = QuantizationConfig(
        config_groups={"group_0": quantization},
        format=quantization.format.value,
        quantization_status=QuantizationStatus.COMPRESSED,
        ignore=ignore,
    ).model_dump(mode="json")
    return {**whole, "version": compressed_tensors.__version__, "sparsity_config": {}, "transform_config": {}}


def from_config(quantization_config):
    """The scheme of a checkpoint that has one for all its quantized modules."""
    whole = QuantizationConfig.model_validate(quantization_config)
    (result,) = whole.config_groups.values()
    result.format = CompressionFormat(result.format or whole.format)
    return result


def compressor(quantization):
    return BaseCompressor.get_value_from_registry(quantization.format.value)


def grouped(weight, args):
    """The weight with everything that shares a scale in the last axis."""
    strategy = str(getattr(args.strategy, "value", args.strategy))
    if strategy == "tensor":
        return weight.reshape(1, -1)
    if strategy == "channel":
        return weight.unsqueeze(1)
    if strategy == "block":
        high, wide = args.block_structure
        weight = maybe_pad_tensor_for_block_quant(weight, (high, wide))
        return weight.unflatten(0, (-1, high)).unflatten(2, (-1, wide)).transpose(1, 2).flatten(-2)
    return weight.unflatten(-1, (-1, args.group_size))


def global_scale(weights):
    """One scale for all weights that a fused kernel will see as one matrix (gate and up of an expert)."""
    return generate_gparam(min(w.amin() for w in weights), max(w.amax() for w in weights))


def compress(weight, quantization, fused=None):
    """Stored tensors of one linear layer. `fused`: the weights that share its global scale, if it is not alone."""
    groups = grouped(weight, quantization.weights)
    state = {"weight": weight}
    scale = None
    if quantization.weights.strategy == "tensor_group":
        scale = state["weight_global_scale"] = global_scale(fused or [weight])
    low, high = groups.amin(-1), groups.amax(-1)
    state["weight_scale"], state["weight_zero_point"] = calculate_qparams(low, high, quantization.weights, global_scale=scale)
    return compressor(quantization).compress(state, quantization)


def decompress(stored, quantization):
    state = {name: tensor.clone() for name, tensor in stored.items()}
    return compressor(quantization).decompress(state, quantization)["weight"].contiguous()


def golden(name):
    quantization = scheme(name)
    tensors = {}
    for case, x in (block_weights() if name == "fp8_block" else sample_weights()).items():
        stored = compress(x, quantization)
        tensors[f"{case}.x"] = x
        tensors.update({f"{case}.{key}": value for key, value in stored.items()})
        tensors[f"{case}.dequant"] = decompress(stored, quantization)
    return tensors, quantization


def goldens():
    for name in WEIGHTS:
        tensors, quantization = golden(name)
        what = f"{quantization.format.value}, min-max: CASE.x as the compressor stores it, CASE.dequant as the decompressor returns it"
        yield f"compressed_tensors_{name}", tensors, {"library": "compressed-tensors", "what": what}
