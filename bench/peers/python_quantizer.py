#!/usr/bin/env python3
"""Quantize the experts of a folder with a library of the field, one matrix at a time, in memory, and print one JSON
line: seconds, input bytes, peak memory. Nothing is written and nothing hashed, which favours the library.

    python_quantizer.py compressed-tensors|modelopt int4-g32|mxfp4|nvfp4 FOLDER THREADS EXPERTS
"""

import json
import pathlib
import resource
import sys
import time

import torch
from safetensors import safe_open

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from oracles import ct  # noqa: E402


def quantizer(library, format):
    if library == "compressed-tensors":
        scheme = ct.scheme(format.replace("-", "_"))
        return lambda weight: ct.compress(weight, scheme)
    from modelopt.torch.quantization.qtensor import INT4QTensor, MXFP4QTensor, NVFP4QTensor

    kind, block = {"int4-g32": (INT4QTensor, 32), "mxfp4": (MXFP4QTensor, 32), "nvfp4": (NVFP4QTensor, 16)}[format]
    return lambda weight: kind.quantize(weight, block)


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    library, format, folder, threads, experts = sys.argv[1:]
    torch.set_num_threads(int(threads))
    weights = []
    for path in sorted(pathlib.Path(folder).glob("*.safetensors"))[:1]:
        with safe_open(path, "pt") as file:
            names = sorted(name for name in file.keys() if ".experts." in name)
            weights += [file.get_tensor(name) for name in names[: 3 * int(experts)]]
    quantize = quantizer(library, format)
    with torch.no_grad():
        quantize(weights[0])  # imports and first-call costs are not the quantizer's
        begin = time.perf_counter()
        for weight in weights:
            quantize(weight)
        seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "bytes": sum(2 * w.numel() for w in weights), "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
