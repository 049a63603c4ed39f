"""Checkpoints built byte by byte with nothing but the standard library, and the program run on them.

These tests share no code with nibble: what they write follows the published formats, and what they read back is decoded
here. The program under test is named by the environment variable NIBBLE (default: build/release/nibble).
"""

import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NIBBLE = os.environ.get("NIBBLE", str(ROOT / "build" / "release" / "nibble"))
# Memory measured on a build with a sanitizer is the sanitizer's.
SANITIZED = any(mark in pathlib.Path(NIBBLE).read_bytes() for mark in (b"__asan_init", b"__tsan_init"))
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
BITS = {"F32": 32, "BF16": 16, "F16": 16, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E8M0": 8, "I32": 32, "I64": 64, "F4": 4,
        "BOOL": 8, "F64": 64}


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def bf16_bits(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def bf16_value(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def e4m3_value(code):
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = (code >> 3) & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return float("nan")
    return sign * (mantissa * 2.0**-9 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


def e8m0_value(code):
    return 2.0 ** (code - 127)


def pack_bf16(values):
    return struct.pack("<%dH" % len(values), *(bf16_bits(v) for v in values))


def pack_f32(values):
    return struct.pack("<%df" % len(values), *values)


def unpack_bf16(data):
    return [bf16_value(b) for b in struct.unpack("<%dH" % (len(data) // 2), data)]


def unpack_f32(data):
    return list(struct.unpack("<%df" % (len(data) // 4), data))


def numel(shape):
    count = 1
    for dim in shape:
        count *= dim
    return count


def normal(count, rng, std=0.05):
    return [rng.gauss(0, std) for _ in range(count)]


def safetensors_bytes(tensors, metadata=None, pad=8):
    """tensors: name -> (dtype, shape, bytes), written in the given order."""
    header, at = {}, 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % pad)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def raw_safetensors(header_text, buffer):
    header = header_text.encode() if isinstance(header_text, str) else header_text
    return struct.pack("<Q", len(header)) + header + buffer


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    base = 8 + size
    return {name: (t["dtype"], t["shape"], data[base + t["data_offsets"][0] : base + t["data_offsets"][1]])
            for name, t in header.items()}


def read_folder(folder):
    tensors = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        tensors.update(read_safetensors(path))
    return tensors


QWEN3_MOE = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "intermediate_size": 128, "vocab_size": 256, "decoder_sparse_step": 1,
    "mlp_only_layers": [], "norm_topk_prob": True, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "hidden_act": "silu",
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "max_position_embeddings": 512, "attention_bias": False,
}


def qwen3_moe(layers=2, experts=4, hidden=64, width=32, vocabulary=256, heads=4, kv_heads=2, head_dim=16, seed=7):
    """The `tiny` of the cases: name -> (dtype, shape, bytes), BF16, and its config."""
    rng = random.Random(seed)

    def weight(*shape):
        return ("BF16", list(shape), pack_bf16(normal(numel(shape), rng)))

    def ones(n):
        return ("BF16", [n], pack_bf16([1.0 + x for x in normal(n, rng)]))

    tensors = {"model.embed_tokens.weight": weight(vocabulary, hidden)}
    for layer in range(layers):
        p = "model.layers.%d." % layer
        tensors[p + "input_layernorm.weight"] = ones(hidden)
        tensors[p + "post_attention_layernorm.weight"] = ones(hidden)
        tensors[p + "self_attn.q_proj.weight"] = weight(heads * head_dim, hidden)
        tensors[p + "self_attn.k_proj.weight"] = weight(kv_heads * head_dim, hidden)
        tensors[p + "self_attn.v_proj.weight"] = weight(kv_heads * head_dim, hidden)
        tensors[p + "self_attn.o_proj.weight"] = weight(hidden, heads * head_dim)
        tensors[p + "self_attn.q_norm.weight"] = ones(head_dim)
        tensors[p + "self_attn.k_norm.weight"] = ones(head_dim)
        tensors[p + "mlp.gate.weight"] = weight(experts, hidden)
        for e in range(experts):
            tensors[p + "mlp.experts.%d.gate_proj.weight" % e] = weight(width, hidden)
            tensors[p + "mlp.experts.%d.up_proj.weight" % e] = weight(width, hidden)
            tensors[p + "mlp.experts.%d.down_proj.weight" % e] = weight(hidden, width)
    tensors["model.norm.weight"] = ones(hidden)
    tensors["lm_head.weight"] = weight(vocabulary, hidden)
    config = dict(QWEN3_MOE, hidden_size=hidden, num_hidden_layers=layers, num_experts=experts, vocab_size=vocabulary,
                  moe_intermediate_size=width, num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim)
    return tensors, config


def glm4_moe(hidden=64, width=32, vocabulary=256, seed=9):
    """GLM-4.5's family in small: a dense layer, one with experts, an MTP layer with an embedding and a head of its own."""
    tensors, config = qwen3_moe(layers=3, hidden=hidden, width=width, vocabulary=vocabulary)
    rng = random.Random(seed)

    def add(name, *shape, dtype="BF16"):
        pack = pack_f32 if dtype == "F32" else pack_bf16
        tensors[name] = (dtype, list(shape), pack(normal(numel(shape), rng)))

    def mlp(module, wide):
        for name, shape in (("gate", (wide, hidden)), ("up", (wide, hidden)), ("down", (hidden, wide))):
            add("%s.%s_proj.weight" % (module, name), *shape)

    for name in [name for name in tensors if name.startswith("model.layers.0.mlp.")]:
        del tensors[name]
    mlp("model.layers.0.mlp", 2 * hidden)
    for layer in (1, 2):
        add("model.layers.%d.mlp.gate.e_score_correction_bias" % layer, 4, dtype="F32")
        mlp("model.layers.%d.mlp.shared_experts" % layer, width)
    for name in ("enorm", "hnorm", "shared_head.norm"):
        add("model.layers.2.%s.weight" % name, hidden)
    add("model.layers.2.eh_proj.weight", hidden, 2 * hidden)
    for name in ("shared_head.head", "embed_tokens"):
        add("model.layers.2.%s.weight" % name, vocabulary, hidden)
    config.pop("num_experts")
    config.update(architectures=["Glm4MoeForCausalLM"], model_type="glm4_moe", num_hidden_layers=2, n_routed_experts=4,
                  n_shared_experts=1, first_k_dense_replace=1, intermediate_size=2 * hidden, use_qk_norm=True,
                  num_nextn_predict_layers=1)
    return tensors, config


def sparse_model(folder, layers, experts, hidden, width):
    """A model of zeros whose weights take no place on the disk; returns the bytes that it has."""
    tensors, config = qwen3_moe(layers=1, experts=1, hidden=64, width=32, vocabulary=64)
    config.update(num_hidden_layers=layers, num_experts=experts, hidden_size=hidden, moe_intermediate_size=width)
    sizes = {64: hidden, 32: width}
    header, at = {}, 0

    def add(name, shape):
        nonlocal at
        size = 2 * numel(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size

    for name, (_, shape, _) in tensors.items():
        for layer in range(layers if ".layers." in name else 1):
            for e in range(experts if ".experts." in name else 1):
                full = name.replace("layers.0.", "layers.%d." % layer).replace("experts.0.", "experts.%d." % e)
                if ".experts." in name:
                    add(full, [sizes[dim] for dim in shape])
                elif name.endswith("mlp.gate.weight"):
                    add(full, [experts, hidden])
                elif "norm" in name:
                    add(full, shape if "q_norm" in name or "k_norm" in name else [hidden])
                elif "o_proj" in name:
                    add(full, [hidden, shape[1]])
                else:
                    add(full, [shape[0], hidden])
    folder.mkdir()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    (folder / "config.json").write_text(json.dumps(config))
    return at


GPT_OSS = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 64, "intermediate_size": 32,
    "num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 2, "experts_per_token": 2, "head_dim": 16,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256, "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"], "swiglu_limit": 7.0, "rms_norm_eps": 1e-5,
    "rope_theta": 150000, "attention_bias": True, "tie_word_embeddings": False, "hidden_act": "silu",
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
    "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
                     "original_max_position_embeddings": 4096},
}


def gpt_oss(layers=2, experts=4, hidden=64, width=32, seed=11):
    """The same sizes in gpt-oss's BF16 form: experts fused, (E, in, out), gate and up interleaved along the outputs."""
    rng = random.Random(seed)

    def weight(*shape):
        return ("BF16", list(shape), pack_bf16(normal(numel(shape), rng)))

    tensors = {"model.embed_tokens.weight": weight(256, hidden)}
    for layer in range(layers):
        p = "model.layers.%d." % layer
        tensors[p + "input_layernorm.weight"] = weight(hidden)
        tensors[p + "post_attention_layernorm.weight"] = weight(hidden)
        for name, rows in (("q", 64), ("k", 32), ("v", 32)):
            tensors[p + "self_attn.%s_proj.weight" % name] = weight(rows, hidden)
            tensors[p + "self_attn.%s_proj.bias" % name] = weight(rows)
        tensors[p + "self_attn.o_proj.weight"] = weight(hidden, 64)
        tensors[p + "self_attn.o_proj.bias"] = weight(hidden)
        tensors[p + "self_attn.sinks"] = weight(4)
        tensors[p + "mlp.router.weight"] = weight(experts, hidden)
        tensors[p + "mlp.router.bias"] = weight(experts)
        tensors[p + "mlp.experts.gate_up_proj"] = weight(experts, hidden, 2 * width)
        tensors[p + "mlp.experts.gate_up_proj_bias"] = weight(experts, 2 * width)
        tensors[p + "mlp.experts.down_proj"] = weight(experts, width, hidden)
        tensors[p + "mlp.experts.down_proj_bias"] = weight(experts, hidden)
    tensors["model.norm.weight"] = weight(hidden)
    tensors["lm_head.weight"] = weight(256, hidden)
    return tensors, dict(GPT_OSS, num_hidden_layers=layers, num_local_experts=experts, hidden_size=hidden,
                         intermediate_size=width, layer_types=(["sliding_attention", "full_attention"] * layers)[:layers])


def write_folder(folder, tensors, config=None, name="model.safetensors", **files):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(safetensors_bytes(tensors, {"format": "pt"}))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    for file, text in files.items():
        (folder / file.replace("__", ".")).write_text(text)
    return folder


def write_shards(folder, shards, config=None, index=True):
    """shards: file name -> tensors."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weight_map, total = {}, 0
    for file, tensors in shards.items():
        (folder / file).write_bytes(safetensors_bytes(tensors, {"format": "pt"}))
        for name, (_, _, data) in tensors.items():
            weight_map[name] = file
            total += len(data)
    if index:
        (folder / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


class Outcome:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        try:
            self.json = json.loads(done.stdout)
        except ValueError:
            self.json = None

    @property
    def text(self):
        return self.out + "\n" + self.err


class CaseTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="nibble_case_"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def nibble(self, *arguments, timeout=120, **options):
        done = subprocess.run([NIBBLE, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, **options)
        self.assertGreaterEqual(done.returncode, 0, "killed by a signal: %s" % done.stderr)
        return Outcome(done)

    def refused(self, *arguments, says=(), **options):
        """Exit code 1, the message holds every word of `says`, and there is a way out."""
        outcome = self.nibble(*arguments, "--json", **options)
        self.assertEqual(outcome.code, 1, outcome.text)
        self.assertIsNotNone(outcome.json, outcome.out)
        if "error" in outcome.json:
            self.assertTrue(outcome.json["error"]["ways_out"], outcome.text)
        for word in says:
            self.assertIn(str(word), outcome.text)
        return outcome

    def done(self, *arguments, **options):
        outcome = self.nibble(*arguments, "--json", **options)
        self.assertEqual(outcome.code, 0, outcome.text)
        self.assertIsNotNone(outcome.json, outcome.out)
        return outcome

    def findings(self, outcome, severity=None, rule=None):
        return [f for f in outcome.json["findings"]
                if (severity is None or f["severity"] == severity) and (rule is None or f["rule"] == rule)]

    def quantize(self, tensors, config, *options, source="source", target="target"):
        write_folder(self.dir / source, tensors, config)
        self.done("quantize", self.dir / source, self.dir / target, *options)
        return read_folder(self.dir / target)
