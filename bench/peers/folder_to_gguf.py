#!/usr/bin/env python3
"""Write the Qwen3-MoE folder that tools/make_moe makes as a BF16 GGUF, so that llama.cpp quantizes the same weights.

    folder_to_gguf.py FOLDER OUT.gguf
"""

import json
import pathlib
import sys

import gguf
import numpy as np
from safetensors import safe_open

LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate": "ffn_gate_inp",
}
WHOLE = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}


class Folder:
    def __init__(self, path):
        self.files = [safe_open(file, "pt") for file in sorted(pathlib.Path(path).glob("*.safetensors"))]
        self.where = {name: file for file in self.files for name in file.keys()}

    def bits(self, name):
        import torch

        return self.where[name].get_tensor(name).view(torch.uint16).numpy()


def floats(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def keys(writer, config):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_expert_count(config["num_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    writer.add_tokenizer_model("none")


def add(writer, name, bits):
    if bits.ndim == 1 or "ffn_gate_inp" in name:  # norms and routers are F32 there
        writer.add_tensor(name, floats(bits))
    else:
        writer.add_tensor(name, bits.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder = Folder(sys.argv[1])
    config = json.loads((pathlib.Path(sys.argv[1]) / "config.json").read_text())
    writer = gguf.GGUFWriter(sys.argv[2], "qwen3moe", use_temp_file=True)
    keys(writer, config)
    for name, other in WHOLE.items():
        add(writer, other, folder.bits(name))
    for layer in range(config["num_hidden_layers"]):
        for name, other in LAYER.items():
            add(writer, f"blk.{layer}.{other}.weight", folder.bits(f"model.layers.{layer}.{name}.weight"))
        for part in ("gate", "up", "down"):
            stack = [folder.bits(f"model.layers.{layer}.mlp.experts.{e}.{part}_proj.weight") for e in range(config["num_experts"])]
            add(writer, f"blk.{layer}.ffn_{part}_exps.weight", np.stack(stack))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
