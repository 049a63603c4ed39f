"""Small GGUF files written with the gguf package: a dense Llama with every block type, and gpt-oss with MXFP4 experts."""

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from transformers import LlamaConfig

from . import ct, families, tiny

LLAMA = dict(
    hidden_size=256,
    intermediate_size=64,
    num_hidden_layers=1,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    max_position_embeddings=512,
    rms_norm_eps=1e-5,
    rope_theta=10000.0,
    tie_word_embeddings=True,
    bos_token_id=1,
    eos_token_id=2,
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["Ġ t", "h e", "i n", "Ġ a", "e r", "o n", "Ġt he", "r e", "Ġ s", "a t", "n d", "Ġ w", "Ġ o", "e n", "i s", "o r", "in g", "Ġa nd"]


def byte_symbols():
    """The printable stand-ins of the 256 bytes in byte-level BPE, in the order of the bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


def vocabulary():
    return [*SPECIAL, *byte_symbols(), *(merge.replace(" ", "") for merge in MERGES)]


def add_tokenizer(writer, tokens):
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if token in SPECIAL else gguf.TokenType.NORMAL for token in tokens])
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}")


def draw(rng, rows, cols):
    return rng.normal(0, 0.05, (rows, cols)).astype(np.float32)


def q4_k_blocks(rng, rows, cols):
    """Random Q4_K blocks of a plausible size: scales and mins in 6 bits, values centred on zero."""
    count = rows * cols // 256
    blocks = rng.integers(0, 256, (count, 144), dtype=np.uint8)
    d = rng.uniform(2e-4, 4e-4, count).astype(np.float16)
    blocks[:, 0:2] = d[:, None].view(np.uint8)
    blocks[:, 2:4] = (d * np.float16(7.5))[:, None].view(np.uint8)
    scale = rng.integers(0, 64, (count, 8), dtype=np.uint8)
    low, high = scale[:, :4], scale[:, 4:]
    blocks[:, 4:8] = blocks[:, 8:12] = low | (high >> 4) << 6  # mins equal to the scales
    blocks[:, 12:16] = (high & 15) | (high & 15) << 4
    return blocks.reshape(rows, -1)


def nvfp4_blocks(stored):
    """compressed-tensors NVFP4 -> GGUF blocks of 64: four scale bytes, then per 16 values element j and j+8 in a byte."""
    packed = stored["weight_packed"].numpy()
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(packed.shape[0], -1, 4, 2, 8)
    scale = stored["weight_scale"].view(torch.uint8).numpy().reshape(packed.shape[0], -1, 4)
    qs = codes[..., 0, :] | codes[..., 1, :] << 4
    return np.concatenate([scale, qs.reshape(*scale.shape[:2], 32)], axis=-1).reshape(packed.shape[0], -1)


def mxfp4_blocks(packed, scale):
    """Consecutive pairs and E8M0 bytes -> GGUF blocks of 32: the scale, then element j and j+16 in a byte."""
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(*scale.shape, 2, 16)
    blocks = np.concatenate([scale[..., None], codes[..., 0, :] | codes[..., 1, :] << 4], axis=-1)
    return blocks.reshape(*scale.shape[:-1], -1)


def rotated_pairs(weight, heads):
    """Rows from the half-split order of transformers to the pairwise order of GGUF llama files."""
    return weight.reshape(heads, 2, -1, weight.shape[-1]).swapaxes(1, 2).reshape(weight.shape)


def half_split(weight, heads):
    return weight.reshape(heads, -1, 2, weight.shape[-1]).swapaxes(1, 2).reshape(weight.shape)


def llama_tensors():
    """GGUF name -> (data, type), every type of the format once."""
    rng = np.random.default_rng(30)
    size, wide = LLAMA["hidden_size"], LLAMA["intermediate_size"]
    query = LLAMA["num_attention_heads"] * LLAMA["head_dim"]
    key = LLAMA["num_key_value_heads"] * LLAMA["head_dim"]
    down = ct.compress(torch.from_numpy(draw(rng, size, wide)).to(torch.bfloat16), ct.scheme("nvfp4"))
    norm = lambda: (1 + 0.1 * rng.normal(size=size)).astype(np.float32)
    plain = {
        "token_embd.weight": (draw(rng, len(vocabulary()), size), Type.Q8_0),
        "blk.0.attn_q.weight": (rotated_pairs(draw(rng, query, size), LLAMA["num_attention_heads"]), Type.Q4_0),
        "blk.0.attn_k.weight": (rotated_pairs(draw(rng, key, size), LLAMA["num_key_value_heads"]), Type.BF16),
        "blk.0.attn_v.weight": (draw(rng, key, size), Type.F16),
        "blk.0.attn_output.weight": (draw(rng, size, query), Type.Q4_1),
        "blk.0.ffn_up.weight": (draw(rng, wide, size), Type.MXFP4),
    }
    tensors = {name: (gguf.quants.quantize(data, kind), kind) for name, (data, kind) in plain.items()}
    tensors["blk.0.ffn_gate.weight"] = (q4_k_blocks(rng, wide, size), Type.Q4_K)
    tensors["blk.0.ffn_down.weight"] = (nvfp4_blocks(down), Type.NVFP4)
    tensors["blk.0.ffn_down.scale"] = ((1 / down["weight_global_scale"]).numpy(), Type.F32)
    for name in ("output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"):
        tensors[name] = (norm(), Type.F32)
    return tensors


LLAMA_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "blk.0.attn_norm.weight": "model.layers.0.input_layernorm.weight",
    "blk.0.ffn_norm.weight": "model.layers.0.post_attention_layernorm.weight",
    "blk.0.attn_q.weight": "model.layers.0.self_attn.q_proj.weight",
    "blk.0.attn_k.weight": "model.layers.0.self_attn.k_proj.weight",
    "blk.0.attn_v.weight": "model.layers.0.self_attn.v_proj.weight",
    "blk.0.attn_output.weight": "model.layers.0.self_attn.o_proj.weight",
    "blk.0.ffn_gate.weight": "model.layers.0.mlp.gate_proj.weight",
    "blk.0.ffn_up.weight": "model.layers.0.mlp.up_proj.weight",
    "blk.0.ffn_down.weight": "model.layers.0.mlp.down_proj.weight",
}


def llama_weights(path):
    """The file's values under the names of transformers, read back with the gguf package."""
    weights = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32) for t in gguf.GGUFReader(path).tensors}
    weights["blk.0.ffn_down.weight"] = weights["blk.0.ffn_down.weight"] * weights.pop("blk.0.ffn_down.scale")
    weights["blk.0.attn_q.weight"] = half_split(weights["blk.0.attn_q.weight"], LLAMA["num_attention_heads"])
    weights["blk.0.attn_k.weight"] = half_split(weights["blk.0.attn_k.weight"], LLAMA["num_key_value_heads"])
    return {LLAMA_NAMES[name]: torch.from_numpy(np.ascontiguousarray(value)) for name, value in weights.items()}


def write_gguf(path, arch, fill_keys, tensors):
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, arch)
    fill_keys(writer)
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, np.ascontiguousarray(data), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def common_keys(writer, config):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_quantization_version(2)


def llama():
    def keys(writer):
        writer.add_name("tiny llama")
        common_keys(writer, LLAMA)
        writer.add_vocab_size(len(vocabulary()))
        writer.add_rope_dimension_count(LLAMA["head_dim"])
        writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
        add_tokenizer(writer, vocabulary())

    path = tiny.MODELS / "llama_gguf" / "model.gguf"
    write_gguf(path, "llama", keys, llama_tensors())
    config = LlamaConfig(**LLAMA, vocab_size=len(vocabulary()), architectures=["LlamaForCausalLM"]).to_dict()
    tiny.write_expected("llama_gguf", config, llama_weights(path))
    return f"llama_gguf: {path.stat().st_size} bytes"


GPT_OSS_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.router": "ffn_gate_inp",
}


def gpt_oss_name(name):
    if name in GPT_OSS_NAMES:
        return GPT_OSS_NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    if rest == "self_attn.sinks":
        return f"blk.{layer}.attn_sinks.weight"
    module, last = rest.rsplit(".", 1)
    return f"blk.{layer}.{GPT_OSS_NAMES[module]}.{last}"


def gpt_oss_tensors(source):
    """The released names and values -> GGUF: gate and up de-interleaved, router, norms, sinks and biases in F32."""
    tensors = {}
    for name, value in source.items():
        if ".experts." in name:
            continue
        kind = Type.F32
        if value.dim() == 2 and "router" not in name:
            kind = Type.BF16
        tensors[gpt_oss_name(name)] = (gguf.quants.quantize(value.float().numpy(), kind), kind)
    for layer in range(2):
        experts, block = f"model.layers.{layer}.mlp.experts.", f"blk.{layer}.ffn_"
        packed = {p: source[f"{experts}{p}_blocks"].flatten(-2).numpy() for p in ("gate_up_proj", "down_proj")}
        scale = {p: source[f"{experts}{p}_scales"].numpy() for p in packed}
        bias = {p: source[f"{experts}{p}_bias"].float().numpy() for p in packed}
        for part, proj, rows in (("gate", "gate_up_proj", np.s_[:, 0::2]), ("up", "gate_up_proj", np.s_[:, 1::2]), ("down", "down_proj", np.s_[:])):
            tensors[f"{block}{part}_exps.weight"] = (mxfp4_blocks(packed[proj][rows], scale[proj][rows]), Type.MXFP4)
            tensors[f"{block}{part}_exps.bias"] = (bias[proj][rows], Type.F32)
    return tensors


def gpt_oss():
    config, source = tiny.read(tiny.MODELS / "gpt_oss_mxfp4")

    def keys(writer):
        writer.add_name("tiny gpt-oss")
        common_keys(writer, config)
        writer.add_vocab_size(config["vocab_size"])
        writer.add_expert_count(config["num_local_experts"])
        writer.add_expert_used_count(config["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(config["intermediate_size"])
        writer.add_sliding_window(config["sliding_window"])
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(config["rope_scaling"]["factor"])
        writer.add_rope_scaling_orig_ctx_len(config["rope_scaling"]["original_max_position_embeddings"])
        writer.add_file_type(gguf.LlamaFileType.MOSTLY_MXFP4_MOE)

    path = tiny.MODELS / "gpt_oss_gguf" / "model.gguf"
    write_gguf(path, "gpt-oss", keys, gpt_oss_tensors(source))
    return f"gpt_oss_gguf: {path.stat().st_size} bytes; its values are those of gpt_oss_mxfp4"


ALL = (llama, gpt_oss)
