"""Goldens from ml_dtypes: one float32 input, one code, for every small float type."""

import ml_dtypes
import numpy as np
import torch

TYPES = {
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e8m0": ml_dtypes.float8_e8m0fnu,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
}
CODES = {"e2m1": 16, "e4m3fn": 256, "e5m2": 256, "e8m0": 256, "bf16": 65536, "f16": 65536}


def code_dtype(name):
    return np.uint16 if CODES[name] > 256 else np.uint8


def values(name):
    """The finite values of a type in ascending order, as float64."""
    codes = np.arange(CODES[name]).astype(code_dtype(name))
    with np.errstate(invalid="ignore"):
        decoded = codes.view(TYPES[name]).astype(np.float64)
    return np.unique(decoded[np.isfinite(decoded)])


def chosen_values(name, rng):
    """All values of a small type; of a 16-bit type the neighbourhoods of its borders and a random choice."""
    every = values(name)
    if len(every) <= 256:
        return every, every
    zero = np.searchsorted(every, 0.0)
    tiny = np.searchsorted(every, float(ml_dtypes.finfo(TYPES[name]).tiny))
    keep = set(rng.integers(0, len(every) - 1, 400).tolist())
    for place in (0, zero, tiny, 2 * zero - tiny, len(every) - 1):
        keep.update(range(max(0, place - 12), min(len(every) - 1, place + 12)))
    keep = np.array(sorted(keep))
    return every[keep], np.unique(np.concatenate([every[keep], every[keep + 1]]))


def inputs(name, rng):
    low, near = chosen_values(name, rng)
    every = values(name)
    after = every[np.minimum(np.searchsorted(every, low) + 1, len(every) - 1)]
    middle = ((low + after) / 2).astype(np.float32)
    top = every[-1]
    edges = np.float32([0.0, -0.0, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38])
    around = every[every != 0]
    with np.errstate(over="ignore"):
        beyond = np.float32([top * f for f in (1.0, 1.03125, 1.0625, 1.25, 1.5, 2.0, 4.0)])
        spread = rng.choice(around, 1200).astype(np.float32) * rng.uniform(0.5, 2, 1200).astype(np.float32)
    x = [near.astype(np.float32), middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf)), edges, beyond]
    x = np.concatenate(x)
    x = np.concatenate([x, -x])
    bits = rng.integers(0, 2**32, 1200, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([x, spread, bits[np.isfinite(bits)]]).astype(np.float32)
    x = x[np.isfinite(x)]
    if name == "e8m0":
        x = np.abs(x)  # the type has no sign
        x = x[x > 0]
    if name != "e2m1":  # the type has neither infinity nor NaN
        x = np.concatenate([x, np.float32([np.inf, -np.inf, np.nan])])
    return x


def golden(name):
    rng = np.random.default_rng(list(TYPES).index(name))
    x = inputs(name, rng)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        codes = x.astype(TYPES[name]).view(code_dtype(name))
    return {"x": torch.from_numpy(x), "codes": torch.from_numpy(codes.copy())}


def goldens():
    for name in TYPES:
        library = "numpy" if name == "f16" else "ml_dtypes"
        what = f"x.astype({name}) by {library}: float32 -> code, round to nearest even, no saturation"
        yield f"ml_dtypes_{name}", golden(name), {"library": "ml_dtypes", "what": what}
