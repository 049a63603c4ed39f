"""Tiny random checkpoints, one a model family, in the layout in which the family was published.

transformers 5 keeps experts fused in memory but writes one 2-D tensor an expert and projection, as published. Its
config.json uses newer keys than the releases do; `published` gives those back, and `llama` keeps the new ones, so
that readers meet both.
"""

import json
import tempfile
import zlib

import torch
from safetensors.torch import load_file
from transformers import (
    DeepseekV3Config,
    Glm4MoeConfig,
    GptOssConfig,
    LlamaConfig,
    MiniMaxM2Config,
    MixtralConfig,
    Qwen3MoeConfig,
    AutoModelForCausalLM,
)

BASE = dict(
    vocab_size=256,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    max_position_embeddings=512,
    bos_token_id=1,
    eos_token_id=2,
)
MLA = dict(q_lora_rank=32, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=16, v_head_dim=16)
TOP2 = dict(num_experts_per_tok=2)
YARN = dict(rope_type="yarn", factor=32.0, beta_fast=32.0, beta_slow=1.0, original_max_position_embeddings=4096, truncate=False)


def without(keys, *dropped):
    return {key: value for key, value in keys.items() if key not in dropped}


def deepseek(wide, groups, kept_groups, scaling, factor, beta_fast):
    yarn = dict(rope_type="yarn", factor=factor, beta_fast=beta_fast, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0)
    return DeepseekV3Config(
        **without(BASE, "num_key_value_heads", "head_dim", "max_position_embeddings"),
        **MLA,
        **TOP2,
        num_key_value_heads=4,
        max_position_embeddings=int(4096 * factor),
        rope_parameters=dict(yarn, rope_theta=10000.0, original_max_position_embeddings=4096),
        intermediate_size=wide,
        moe_intermediate_size=32,
        n_routed_experts=4,
        n_shared_experts=1,
        first_k_dense_replace=1,
        n_group=groups,
        topk_group=kept_groups,
        routed_scaling_factor=scaling,
        num_nextn_predict_layers=0,
    )


def configs():
    experts = dict(num_local_experts=4, intermediate_size=32, **TOP2)
    return {
        "qwen3_moe": Qwen3MoeConfig(**BASE, **TOP2, num_experts=4, moe_intermediate_size=32, intermediate_size=128, norm_topk_prob=True, rope_theta=1000000.0),
        "gpt_oss": GptOssConfig(**BASE, **experts, sliding_window=8, rope_parameters=dict(YARN, rope_theta=150000.0)),
        # 160 rows: one whole and one partial FP8 block
        "deepseek_v3": deepseek(wide=160, groups=2, kept_groups=1, scaling=2.5, factor=40.0, beta_fast=32.0),
        "kimi_k2": deepseek(wide=32, groups=1, kept_groups=1, scaling=2.827, factor=32.0, beta_fast=1.0),
        "glm4_moe": Glm4MoeConfig(
            **BASE,
            **TOP2,
            n_routed_experts=4,
            n_shared_experts=1,
            n_group=1,
            topk_group=1,
            moe_intermediate_size=32,
            intermediate_size=128,
            first_k_dense_replace=1,
            use_qk_norm=True,
            attention_bias=True,
            num_nextn_predict_layers=0,
        ),
        "minimax_m2": MiniMaxM2Config(**BASE, **experts, rotary_dim=8, rope_parameters={"rope_type": "default", "rope_theta": 5000000.0, "partial_rotary_factor": 0.5}),
        "mixtral": MixtralConfig(**BASE, **experts),
        "llama": LlamaConfig(**BASE, intermediate_size=96, tie_word_embeddings=True),
    }


# Keys that the releases carry and transformers 5 does not write.
PUBLISHED = {
    "deepseek_v3": {"scoring_func": "sigmoid", "topk_method": "noaux_tc", "moe_layer_freq": 1, "seq_aux": True, "ep_size": 1},
    "kimi_k2": {"model_type": "kimi_k2", "scoring_func": "sigmoid", "topk_method": "noaux_tc", "moe_layer_freq": 1, "seq_aux": True, "ep_size": 1},
    "glm4_moe": {"partial_rotary_factor": 0.5},
    "minimax_m2": {"scoring_func": "sigmoid", "use_routing_bias": True, "use_qk_norm": True, "qk_norm_type": "per_layer", "attn_type_list": [1, 1]},
}


def published(family, config):
    """The config as the release spells it."""
    if family == "llama":
        return config
    config = dict(config)
    config["torch_dtype"] = config.pop("dtype")
    rope = dict(config.pop("rope_parameters"))
    config["rope_theta"] = rope.pop("rope_theta")
    rope.pop("partial_rotary_factor", None)
    config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    if family == "qwen3_moe":
        config["num_experts"] = config.pop("num_local_experts")
    for unpublished in ("qk_head_dim", "rope_interleave", "swiglu_alpha"):
        config.pop(unpublished, None)
    if family in ("deepseek_v3", "kimi_k2"):
        config.pop("head_dim", None)
        config["rope_scaling"]["type"] = config["rope_scaling"].pop("rope_type")
    config.update(PUBLISHED.get(family, {}))
    config.pop("transformers_version")
    return dict(sorted(config.items()))


def fill(model, seed=0):
    """Values that depend on the tensor's name alone, so that they do not change with the order of construction."""
    for name, tensor in model.state_dict().items():
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()) + seed)
        values = torch.randn(tensor.shape, generator=generator)
        is_norm = tensor.dim() == 1 and "norm" in name
        tensor.copy_(1 + 0.1 * values if is_norm else 0.05 * values)


def as_released(name, tensor):
    """Router weights are BF16 in the releases and float32 in memory; correction biases are float32 in both."""
    wanted = torch.float32 if name.endswith("e_score_correction_bias") else torch.bfloat16
    return tensor.to(wanted)


def build(family):
    """(config dictionary, tensors) of the published checkpoint."""
    config = configs()[family]
    config.dtype = torch.bfloat16
    with torch.no_grad():
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        fill(model)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tensors = load_file(f"{folder}/model.safetensors")
        with open(f"{folder}/config.json") as file:
            written = json.load(file)
    return published(family, written), {name: as_released(name, tensor) for name, tensor in tensors.items()}
