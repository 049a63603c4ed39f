#!/usr/bin/env python3
"""Make tests/golden/field.json: digests of what the field's libraries read from and write into the tiny checkpoints of
tests/golden/models, so that nibble can be held to them where the libraries are not installed.

A digest is SHA-256 over the tensors in the order of their names: name, dtype, shape and bytes of each. Run with
build/oracles/bin/python (tools/oracles/setup.sh). Where a digest differs, tools/check_field.sh says in which tensor.
"""

import argparse
import hashlib

import torch

import field_check
import field_read
from oracles import tiny, tiny_quant
from oracles.common import GOLDEN, save_json, versions

DTYPES = {  # torch's name -> safetensors' name
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.uint8: "U8",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.float8_e4m3fn: "F8_E4M3",
}


def digest(tensors):
    whole = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        shape = ",".join(map(str, tensor.shape))
        whole.update(f"{name} {DTYPES[tensor.dtype]} [{shape}]\n".encode())
        whole.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.dim() else tensor.reshape(1).view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()


def positive_zeros(tensors):
    """Decoders differ in the sign of zero: nibble's own is +0 wherever its bytes say no more."""
    return {name: field_check.positive_zeros(tensor) for name, tensor in tensors.items()}


def read():
    for source, want, options in field_read.cases():
        yield {
            "source": str(source.relative_to(GOLDEN / "models")),
            "generic": options[1] if options else "",
            "tensors": len(want),
            "sha256": digest(positive_zeros(want)),
        }


def modelopt(family):
    _, source = tiny.read(tiny.MODELS / family)
    stored = {}
    for name, weight in source.items():
        if ".experts." not in name:
            stored[name] = weight
            continue
        made = tiny_quant.modelopt_nvfp4(weight, [source[other] for other in tiny_quant.fused_with(name)])
        stored |= {name.removesuffix("weight") + part: tensor for part, tensor in made.items()}
    return stored


def write():
    for family in field_check.FAMILIES:
        if family == "gpt_oss":
            continue  # no library writes its experts one by one from the fused source; see tools/field_check.py
        for format, scheme in field_check.FORMATS.items():
            _, stored, _ = tiny_quant.compressed_tensors(scheme, family)
            yield {"source": family, "format": format, "library": "compressed-tensors", "layout": "", "sha256": digest(stored), "tensors": len(stored)}
        stored = modelopt(family)
        yield {"source": family, "format": "nvfp4", "library": "modelopt", "layout": "", "sha256": digest(stored), "tensors": len(stored)}
    _, stored = tiny.read(tiny.MODELS / "gpt_oss_mxfp4")
    yield {"source": "gpt_oss", "format": "mxfp4", "library": "compressed-tensors", "layout": "gpt-oss", "sha256": digest(stored), "tensors": len(stored)}


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    torch.set_num_threads(1)
    golden = {"versions": versions(), "read": list(read()), "write": list(write())}
    save_json(GOLDEN / "field.json", golden)
    print(f"{len(golden['read'])} read, {len(golden['write'])} written")


if __name__ == "__main__":
    main()
