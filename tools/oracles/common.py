"""What the oracle scripts share: where files go, deterministic safetensors files, and the sample weights."""

import importlib.metadata
import json
import pathlib
import struct

import torch
from safetensors.torch import save

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
PACKAGES = (
    "torch",
    "numpy",
    "safetensors",
    "transformers",
    "tokenizers",
    "compressed-tensors",
    "nvidia-modelopt",
    "ml_dtypes",
    "gguf",
)


def versions():
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def save_tensors(path, tensors, metadata):
    """Write a safetensors file that is the same byte for byte on every run.

    The library's own writer orders __metadata__ by a seeded hash, so its header is written again here in sorted order.
    """
    blob = save({name: tensor.contiguous() for name, tensor in tensors.items()}, {key: str(metadata[key]) for key in metadata})
    (length,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8 : 8 + length])
    ordered = {"__metadata__": dict(sorted(header.pop("__metadata__").items()))}
    ordered.update(sorted(header.items(), key=lambda item: item[1]["data_offsets"]))
    text = json.dumps(ordered, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + blob[8 + length :])


def save_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n")


def normal(rows, cols, seed, std=0.05):
    """BF16 normal weights. Drawn in float32: torch's BF16 generator has a short tail."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(rows, cols, generator=generator) * std).to(torch.bfloat16)


def awkward(rows=24, cols=256, seed=2):
    """BF16 weights whose rows hold what breaks quantizers, one kind a row; the other rows are normal."""
    x = normal(rows, cols, seed).float()
    x[0, :128] = 0  # zero groups of every size in use
    x[1] = 0
    x[2] = 1e-30
    x[3] *= 64  # outliers: they set the scale of a whole tensor
    x[4, ::3] = -0.0
    x[5] = 0.03125
    x[6, 0::2], x[6, 1::2] = 0.75, -0.75
    x[7] = 2.0 ** torch.arange(cols).remainder(24).sub(16).float()
    x[8] = x[8].abs()
    x[9] = -x[9].abs()
    x[10] *= 2.0**-120  # products and quotients close to the smallest normal number
    x[11] = torch.tensor([1.0, -0.1484375] * (cols // 2))  # t = ±7.5 and, in BF16, a near tie
    x[12] = torch.linspace(-1, 1, cols)
    x[13, :32], x[13, 32:64] = 2.0**-133, -(2.0**-126)  # subnormal and smallest normal
    return x.to(torch.bfloat16)


def maxima(rows=16, cols=256, seed=3):
    """BF16 weights whose groups of 32 have every BF16 significand 1.m as their maximum, over several exponents."""
    generator = torch.Generator().manual_seed(seed)
    x = (torch.rand(rows * cols // 32, 32, generator=generator) * 2 - 1).float()
    groups = torch.arange(x.shape[0])
    top = (1 + groups.remainder(128) / 128.0) * 2.0 ** (groups.remainder(7).float() - 5)
    x = (x * top[:, None] * 0.99).to(torch.bfloat16)
    x[groups, groups.remainder(32)] = torch.where(groups.remainder(2) == 0, top, -top).to(torch.bfloat16)
    return x.reshape(rows, cols)


def sample_weights():
    return {"plain": normal(32, 256, seed=1), "awkward": awkward(), "maxima": maxima()}


def block_weights():
    """For 128x128 blocks: whole blocks, and a shape whose last row and column of blocks are partial."""
    edge = normal(200, 320, seed=4)
    edge[:128, 128:256] = 0
    edge[190, 300] = 8.0
    return {"whole": normal(128, 256, seed=5), "edge": edge}
