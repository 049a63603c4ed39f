#!/usr/bin/env python3
"""Make tests/golden/kernels/tensor_core.json: what a published bit-level model of block-scaled tensor cores (mmasim)
gives for products of four-bit floats: 16 outputs a case, K columns, random codes, scales over many binades, and cases with
zeros, cancelling sums, subnormal scales and results, and accumulators that are not zero.

Run with build/oracles/bin/python (tools/oracles/setup.sh).
"""

import importlib.metadata
import json

import numpy
import torch
from mmasim.arithmetic import fdpa

from oracles.common import GOLDEN

OUTPUTS = 16
# (G, F, rounding, columns of a step, exponent of zero) of the 64-column kinds, as the package has them.
STEP = dict(G=16, F=35, rho="RZ-FP32", L_max=64, e_zero=-139)
SCALES = {"e8m0": (torch.float8_e8m0fnu, 32), "e4m3": (torch.float8_e4m3fn, 16)}


def digits(codes):
    return "".join(f"{code:x}" for code in codes.ravel())


def make_case(rng, kind, columns, spread, zeros, accumulators):
    dtype, block = SCALES[kind]
    codes = rng.integers(0, 16, (2, OUTPUTS, columns), dtype=numpy.uint8)
    codes[rng.random(codes.shape) < zeros] = 0
    shape = (2, OUTPUTS, columns // block)
    middle, low, high = (127, 0, 254) if kind == "e8m0" else (56, 0, 126)
    scales = numpy.clip(middle + rng.integers(-spread, spread + 1, shape), low, high).astype(numpy.uint8)
    start = (rng.standard_normal(OUTPUTS) * accumulators).astype(numpy.float32)
    # The package wants the first column in the high nibble.
    packed = torch.from_numpy(codes[..., 0::2] << 4 | codes[..., 1::2])
    parts = torch.from_numpy(scales).view(dtype)
    out = fdpa.MMA_GST_FDPA(**STEP).dpa(packed[0], packed[1], torch.from_numpy(start), parts[0], parts[1])
    return {
        "scale": kind,
        "columns": columns,
        "weights": digits(codes[0]),
        "activations": digits(codes[1]),
        "weight_scales": scales[0].tobytes().hex(),
        "activation_scales": scales[1].tobytes().hex(),
        "start": start.tobytes().hex(),
        "out": out.numpy().astype(numpy.float32).tobytes().hex(),
    }


def main():
    rng = numpy.random.default_rng(1)
    cases = []
    for kind in SCALES:
        for columns in (64, 128, 192):
            for spread in (0, 3, 20, 60):
                for zeros in (0.0, 0.5, 0.97):
                    cases.append(make_case(rng, kind, columns, spread, zeros, 0.0 if spread == 3 else 10.0 ** (spread / 10)))
    (GOLDEN / "kernels").mkdir(exist_ok=True)
    text = json.dumps({"versions": {name: importlib.metadata.version(name) for name in ("mmasim", "torch")}, "outputs": OUTPUTS, "cases": cases}, indent=0)
    (GOLDEN / "kernels" / "tensor_core.json").write_text(text + "\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
