"""Folders of tiny checkpoints and what a reader should compute from them."""

import contextlib
import json
import os
import tempfile
import warnings

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, DeepseekV3Config
from transformers.utils import logging

from .common import GOLDEN, save_json, save_tensors

MODELS = GOLDEN / "models"
TOKENS = torch.tensor([[(7 * i * i + 3 * i + 5) % 256 for i in range(16)]])

logging.set_verbosity_error()
logging.disable_progress_bar()


def write(folder, config, tensors, generation=True):
    save_json(folder / "config.json", config)
    if generation:
        save_json(folder / "generation_config.json", {"bos_token_id": 1, "eos_token_id": 2, "do_sample": False})
    save_tensors(folder / "model.safetensors", tensors, {"format": "pt"})


def read(folder):
    with open(folder / "config.json") as file:
        return json.load(file), load_file(folder / "model.safetensors")


def load(folder, **options):
    """The transformers model of a folder; a tensor that is missing or left over is an error.

    kimi_k2 is no model type of the library. Under that name DeepSeek's classes load, but the rules that fuse the
    experts do not apply and the experts keep random values, so it gets DeepSeek's name.
    """
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    if config["model_type"] == "kimi_k2":
        options["config"] = DeepseekV3Config(**{**config, "model_type": "deepseek_v3"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, report = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", output_loading_info=True, **options)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if report.get(kind):
            raise ValueError(f"{folder}: {kind}: {sorted(report[kind])[:5]}")
    return model.eval()


def logits(model, tokens=TOKENS):
    with torch.no_grad():
        return model(tokens).logits


@contextlib.contextmanager
def dense_folder(config, tensors):
    """A temporary unquantized checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        config = {key: value for key, value in config.items() if key != "quantization_config"}
        with open(f"{folder}/config.json", "w") as file:
            json.dump(config, file)
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, f"{folder}/model.safetensors", {"format": "pt"})
        yield folder


def write_expected(name, config, tensors, **extra):
    """Logits in float32 arithmetic from these (dequantized) weights."""
    with dense_folder(config, tensors) as folder:
        result = logits(load(folder, dtype=torch.float32))[0]
    what = "logits (T, V) of input_ids in float32 arithmetic, eager attention, weights as stored"
    save_tensors(MODELS / "expected" / f"{name}.safetensors", {"input_ids": TOKENS[0], "logits": result, **extra}, {"library": "transformers", "what": what})
