#!/usr/bin/env python3
"""Write a GGUF file of a real model's shape with random weights: what engines are compared on where nothing can be downloaded.

    random_gguf.py gpt-oss-20b|qwen3-30b-a3b OUT.gguf [--layers N]

gpt-oss-20b: experts MXFP4, attention, embedding and output Q8_0 (12.1 GB). qwen3-30b-a3b: experts and attention Q4_0,
embedding and output Q8_0; 12 of its 48 layers unless told otherwise (4.8 GB). Blocks are valid, weights as large as
trained ones, so that routers spread tokens over all experts and nothing overflows. The vocabulary is a number alone: token
ids are what engines are measured with. Needs Python's standard library, and as much disk as the file is large.
"""

import argparse
import array
import math
import pathlib
import random
import struct

ALIGNMENT = 32
# GGUF's number of the type, elements and bytes of a block.
TYPES = {"F32": (0, 1, 4), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34), "BF16": (30, 1, 2), "MXFP4": (39, 32, 17)}
SIZE = 0.02  # of a weight
# Blocks that are made; tensors begin at different ones and repeat them. Primes, so that rows and experts differ.
POOL_BLOCKS, POOL_FLOATS = 65537, 131071

GPT_OSS = {
    "architecture": "gpt-oss", "vocabulary": 201088, "layers": 24, "hidden": 2880, "heads": 64, "kv_heads": 8, "head_dim": 64,
    "experts": 32, "used": 4, "width": 2880, "dense": 2880, "context": 131072, "theta": 150000.0, "eps": 1e-5,
    "expert_type": "MXFP4", "attention_type": "Q8_0", "window": 128,
}
QWEN3_MOE = {
    "architecture": "qwen3moe", "vocabulary": 151936, "layers": 12, "hidden": 2048, "heads": 32, "kv_heads": 4, "head_dim": 128,
    "experts": 128, "used": 8, "width": 768, "dense": 6144, "context": 40960, "theta": 1e6, "eps": 1e-6,
    "expert_type": "Q4_0", "attention_type": "Q4_0", "window": 0,
}
MODELS = {"gpt-oss-20b": GPT_OSS, "qwen3-30b-a3b": QWEN3_MOE}


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key, value):
    """A key with a number (u32, or f32 where it is no whole number) or a text."""
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", 6, value)
    return text(key) + struct.pack("<II", 4, value)


class Tensor:
    """A name, a type, a shape as (…, N, K), and the function that yields its bytes."""

    def __init__(self, name, kind, shape, data):
        self.name, self.kind, self.shape, self.data = name, kind, tuple(shape), data
        _, elements, size = TYPES[kind]
        self.bytes = math.prod(shape) // elements * size

    def info(self, offset):
        dims = b"".join(struct.pack("<Q", n) for n in reversed(self.shape))
        return text(self.name) + struct.pack("<I", len(self.shape)) + dims + struct.pack("<IQ", TYPES[self.kind][0], offset)


def padding(size):
    return bytes(-size % ALIGNMENT)


def write(path, keys, tensors):
    """`keys`: name -> number or text. Data is written tensor by tensor, so that memory stays small."""
    infos, offset = [], 0
    for tensor in tensors:
        infos.append(tensor.info(offset))
        offset += tensor.bytes + len(padding(tensor.bytes))
    head = b"GGUF" + struct.pack("<Iqq", 3, len(tensors), len(keys))
    head += b"".join(pair(key, value) for key, value in keys.items()) + b"".join(infos)
    with open(path, "wb") as file:
        file.write(head + padding(len(head)))
        for tensor in tensors:
            written = 0
            for part in tensor.data(tensor):
                file.write(part)
                written += len(part)
            assert written == tensor.bytes, f"{tensor.name}: {written} bytes instead of {tensor.bytes}"
            file.write(padding(written))


class Pools:
    """Random data of each type, made once."""

    def __init__(self, seed=1):
        self.random = random.Random(seed)
        self.made = {}

    def halves(self, size):
        """Float16 scales around `size`, as two bytes each."""
        values = [size * (0.75 + 0.5 * self.random.random()) for _ in range(POOL_BLOCKS)]
        return struct.pack(f"<{POOL_BLOCKS}e", *values)

    def blocks(self, kind):
        size = TYPES[kind][2]
        pool = bytearray(self.random.randbytes(POOL_BLOCKS * size))
        if kind == "MXFP4":  # an exponent of 2, and 16 bytes of codes up to 6
            pool[0::size] = bytes(119 + self.random.getrandbits(1) for _ in range(POOL_BLOCKS))
        else:  # a scale, then codes whose size is 4.6 and 74 on average
            scales = self.halves(SIZE / {"Q4_0": 4.6, "Q8_0": 74}[kind])
            pool[0::size], pool[1::size] = scales[0::2], scales[1::2]
        return bytes(pool)

    def normal(self):
        return array.array("f", (self.random.gauss(0, 1) for _ in range(POOL_FLOATS)))

    def get(self, key, make):
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def quantized(self, tensor):
        kind = tensor.kind
        return self.repeated(self.get(kind, lambda: self.blocks(kind)), TYPES[kind][2], tensor.bytes)

    def scaled(self, size, offset=0.0):
        """Float32 of a size around an offset."""

        def data(tensor):
            pool = self.get((size, offset), lambda: self.moved(size, offset))
            return self.repeated(pool, 4, tensor.bytes)

        return data

    def moved(self, size, offset):
        numbers = self.get("normal", self.normal)
        return array.array("f", (offset + size * number for number in numbers)).tobytes()

    def repeated(self, pool, step, size):
        at = self.random.randrange(len(pool) // step) * step
        view = memoryview(pool)
        while size > 0:
            part = view[at : at + size]
            yield part
            size, at = size - len(part), 0


def keys_of(model, name):
    keys = {
        "block_count": model["layers"], "context_length": model["context"], "embedding_length": model["hidden"],
        "feed_forward_length": model["dense"], "attention.head_count": model["heads"], "attention.head_count_kv": model["kv_heads"],
        "attention.key_length": model["head_dim"], "attention.value_length": model["head_dim"],
        "attention.layer_norm_rms_epsilon": model["eps"], "rope.freq_base": model["theta"],
        "rope.dimension_count": model["head_dim"], "expert_count": model["experts"], "expert_used_count": model["used"],
        "expert_feed_forward_length": model["width"], "vocab_size": model["vocabulary"],
    }
    if model["architecture"] == "gpt-oss":
        keys |= {
            "attention.sliding_window": model["window"], "rope.scaling.type": "yarn", "rope.scaling.factor": 32.0,
            "rope.scaling.original_context_length": 4096,
        }
    general = {"general.architecture": model["architecture"], "general.name": f"{name} with random weights", "general.quantization_version": 2}
    return general | {f"{model['architecture']}.{key}": value for key, value in keys.items()} | {"tokenizer.ggml.model": "none"}


def layer_tensors(model, index, pools):
    oss = model["architecture"] == "gpt-oss"
    hidden, query, key = model["hidden"], model["heads"] * model["head_dim"], model["kv_heads"] * model["head_dim"]
    experts, width = model["experts"], model["width"]
    block = f"blk.{index}."
    norms = [("attn_norm", hidden), ("post_attention_norm" if oss else "ffn_norm", hidden)]
    if not oss:
        norms += [("attn_q_norm", model["head_dim"]), ("attn_k_norm", model["head_dim"])]
    for name, size in norms:
        yield Tensor(f"{block}{name}.weight", "F32", (size,), pools.scaled(0.1, 1.0))
    for name, rows, cols in (("attn_q", query, hidden), ("attn_k", key, hidden), ("attn_v", key, hidden), ("attn_output", hidden, query)):
        yield Tensor(f"{block}{name}.weight", model["attention_type"], (rows, cols), pools.quantized)
        if oss:
            yield Tensor(f"{block}{name}.bias", "F32", (rows,), pools.scaled(SIZE / 2))
    yield Tensor(f"{block}ffn_gate_inp.weight", "F32", (experts, hidden), pools.scaled(SIZE))
    if oss:
        yield Tensor(f"{block}attn_sinks.weight", "F32", (model["heads"],), pools.scaled(1.0))
        yield Tensor(f"{block}ffn_gate_inp.bias", "F32", (experts,), pools.scaled(SIZE / 2))
    for name, rows, cols in (("gate", width, hidden), ("up", width, hidden), ("down", hidden, width)):
        yield Tensor(f"{block}ffn_{name}_exps.weight", model["expert_type"], (experts, rows, cols), pools.quantized)
        if oss:
            yield Tensor(f"{block}ffn_{name}_exps.bias", "F32", (experts, rows), pools.scaled(SIZE / 2))


def tensors_of(model, pools=None):
    pools = pools or Pools()
    whole = (model["vocabulary"], model["hidden"])
    tensors = [
        Tensor("token_embd.weight", "Q8_0", whole, pools.quantized),
        Tensor("output_norm.weight", "F32", (model["hidden"],), pools.scaled(0.1, 1.0)),
        Tensor("output.weight", "Q8_0", whole, pools.quantized),
    ]
    for index in range(model["layers"]):
        tensors += layer_tensors(model, index, pools)
    return tensors


def file_bytes(model):
    """About: headers are left out."""
    return sum(tensor.bytes for tensor in tensors_of(model))


def make(path, name, model):
    write(path, keys_of(model, name), tensors_of(model))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=list(MODELS))
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--layers", type=int)
    options = parser.parse_args()
    model = dict(MODELS[options.model])
    model["layers"] = options.layers or model["layers"]
    make(options.out, options.model, model)
    print(f"{options.out}: {options.out.stat().st_size / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
