"""Names, shapes and totals of whole models, as transformers builds them, without their weights.

    python tools/oracles/model_parameters.py

Reads the configurations in data/models, builds each model on torch's meta device (no memory, no download) and
writes tests/data/models/transformers_parameters.json: per configuration the number of elements in the state dict, and
its tensors as [name with "#" for numbers, shape, how many]. Names are transformers' own in memory: experts fused, "mlp"
where Mixtral and MiniMax files say "block_sparse_moe".
"""

import collections
import json
import os
import pathlib
import re

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

MODELS = [
    "gpt-oss-20b", "gpt-oss-120b", "deepseek-v3", "deepseek-v3.2", "kimi-k2-instruct", "kimi-k2-thinking",
    "qwen3-30b-a3b", "qwen3-235b-a22b", "qwen3-coder-480b-a35b", "glm-4.5", "glm-4.5-air", "minimax-m2.5",
    "minimax-m2.7", "mixtral-8x7b", "mixtral-8x22b", "deepseek-v4-flash", "deepseek-v4-pro",
]
# Kimi-K2 is DeepSeek-V3's architecture under another name that transformers does not list.
ALIASES = {"kimi_k2": "deepseek_v3"}


def parameters(path):
    config = json.loads(path.read_text())
    config.pop("quantization_config", None)
    config["model_type"] = ALIASES.get(config["model_type"], config["model_type"])
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(CONFIG_MAPPING[config["model_type"]].from_dict(config))
    counts = collections.Counter()
    elements = 0
    for name, tensor in model.state_dict().items():
        counts[(re.sub(r"\d+", "#", name), tuple(tensor.shape))] += 1
        elements += tensor.numel()
    return {"elements": elements, "tensors": [[name, list(shape), n] for (name, shape), n in sorted(counts.items())]}


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    folder = root / "tests" / "data" / "models"
    result = {"transformers": transformers.__version__}
    for name in MODELS:
        result[name] = parameters(root / "data" / "models" / f"{name}.json")
    lines = [f'"transformers": {json.dumps(result.pop("transformers"))}']
    for name, entry in result.items():
        rows = ",\n".join("  " + json.dumps(row) for row in entry["tensors"])
        lines.append(f'"{name}": {{"elements": {entry["elements"]}, "tensors": [\n{rows}]}}')
    (folder / "transformers_parameters.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
