#!/usr/bin/env python3
"""Make tests/golden/modelopt_export.json: what ModelOpt's own export_hf_checkpoint writes of the tiny checkpoints of
tests/golden/models with their routed experts in weight-only NVFP4: both configurations as they are, the names of all
tensors, and one digest over the quantized modules' names, dtypes, shapes and bytes. `nibble quantize --layout modelopt
--bit-exact-with modelopt` is held to it. The other tensors are not compared: the model that the library exports has been
through transformers, which widens routers to F32 and narrows correction biases to BF16; nibble keeps the source's bytes.

    make_modelopt_golden.py [FOLDER]     FOLDER: keep the exports there

Run with build/oracles/bin/python (tools/oracles/setup.sh).
"""

import argparse
import contextlib
import io
import json
import pathlib
import re
import tempfile
import warnings

import torch

from make_field_goldens import digest
from oracles import mo, tiny
from oracles.common import GOLDEN, save_json, versions

FAMILIES = ("qwen3_moe", "gpt_oss", "deepseek_v3", "kimi_k2", "glm4_moe", "minimax_m2", "mixtral")


def recipe():
    """Its preset for experts, without activations: nothing is calibrated then."""
    preset = dict(mo.mtq.NVFP4_EXPERTS_ONLY_CFG)
    return {**preset, "quant_cfg": [entry for entry in preset["quant_cfg"] if "input_quantizer" not in entry["quantizer_name"]]}


def quantized(name, tensors):
    """Of a linear module, or of a stack whose parts have its name and a tail (gpt-oss)."""
    module = name.rpartition(".")[0]
    stack = re.sub("_weight_scale(_2)?$", "", name)
    return f"{module}.weight_scale" in tensors or f"{stack}_weight_scale" in tensors


def export(family, folder):
    from modelopt.torch.export import export_hf_checkpoint

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        model = tiny.load(tiny.MODELS / family, dtype=torch.bfloat16)
        with torch.no_grad():
            mo.mtq.quantize(model, recipe(), lambda m: m(tiny.TOKENS))
        with torch.inference_mode():
            export_hf_checkpoint(model, dtype=torch.bfloat16, export_dir=folder)
    config, tensors = tiny.read(folder)
    return {
        "names": sorted(tensors),
        "sha256": digest({name: tensor for name, tensor in tensors.items() if quantized(name, tensors)}),
        "quantization_config": config["quantization_config"],
        "hf_quant_config": json.loads((folder / "hf_quant_config.json").read_text()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", help="keep the exports here")
    kept = parser.parse_args().folder
    torch.set_num_threads(1)
    families = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(kept or scratch)
        for family in FAMILIES:
            families[family] = export(family, folder / family)
            print(f"{family}: {len(families[family]['names'])} tensors", flush=True)
    save_json(GOLDEN / "modelopt_export.json", {"versions": versions(), "families": families})


if __name__ == "__main__":
    main()
