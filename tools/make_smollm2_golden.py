#!/usr/bin/env python3
"""Write tests/golden/smollm2.json: what SmolLM2-135M-Instruct.Q4_1.gguf must tokenize and generate.

The tokenizer is built with the `tokenizers` library from the file's vocabulary, with the pre-tokenizer that the name
`smollm` stands for (every digit alone, then byte-level BPE); the model is transformers' Llama in float32 with the
file's values as the gguf package decodes them. Needs tools/fetch_smollm2.py.
"""

import argparse

import gguf
import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from fetch_smollm2 import TARGET
from oracles.common import GOLDEN, save_json, versions
from oracles.tiny_gguf import half_split

HEADS, KEY_HEADS = 9, 3
NAMES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TEXTS = [
    "",
    "Hello world",
    " Hello  world ",
    "a  1",
    "x = 12;\t// 3.50\r\n\r\n  y",
    "don't can't we'll I'M",
    "1234567 ١٢٣ ² Ⅷ ½",
    "naïve café Ünïcödé",
    "日本語のテキスト",
    "😀 👩‍👩‍👧",
    "\x00\x01\x04\x7f",
    "<|im_start|>user\nHi<|im_end|>\n<|endoftext|>",
    "<|im_start|",
    "    def f(x):\n        return x ** 2\n",
    "…—“quoted”",
]
PROMPTS = ["What is the capital of France?", "Count from 1 to 5.", "Write one sentence about the sea."]


def contents(reader, key):
    return reader.fields[key].contents()


def tokenizer(reader):
    tokens = contents(reader, "tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in contents(reader, "tokenizer.ggml.merges")]
    result = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    result.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    result.decoder = decoders.ByteLevel()
    kinds = contents(reader, "tokenizer.ggml.token_type")
    result.add_special_tokens([AddedToken(token, normalized=False, special=True) for token, kind in zip(tokens, kinds) if kind == gguf.TokenType.CONTROL])
    return result


def weight_name(name):
    if not name.startswith("blk."):
        return {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}[name]
    _, layer, part, last = name.split(".")
    return f"model.layers.{layer}.{NAMES[part]}.{last}"


def weights(reader):
    for tensor in reader.tensors:
        value = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if "attn_q" in tensor.name or "attn_k" in tensor.name:
            value = half_split(value, HEADS if "attn_q" in tensor.name else KEY_HEADS)
        yield weight_name(tensor.name), torch.from_numpy(np.ascontiguousarray(value))


def model(reader):
    llama = lambda key: contents(reader, f"llama.{key}")
    config = LlamaConfig(
        hidden_size=llama("embedding_length"),
        intermediate_size=llama("feed_forward_length"),
        num_hidden_layers=llama("block_count"),
        num_attention_heads=llama("attention.head_count"),
        num_key_value_heads=llama("attention.head_count_kv"),
        vocab_size=llama("vocab_size"),
        max_position_embeddings=llama("context_length"),
        rms_norm_eps=llama("attention.layer_norm_rms_epsilon"),
        rope_theta=llama("rope.freq_base"),
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        attn_implementation="eager",
    )
    result = LlamaForCausalLM(config).float().eval()
    state = dict(weights(reader))
    missing, unexpected = result.load_state_dict(state, strict=False)
    assert set(missing) <= {"lm_head.weight"} and not unexpected, (missing, unexpected)
    result.tie_weights()
    return result


def chat(prompt):
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    return f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"


def generation(llama, tokens, prompt):
    """Greedy tokens, with the gap between the best and the second logit at each step: a small gap may flip elsewhere."""
    text = chat(prompt)
    ids = tokens.encode(text).ids
    with torch.no_grad():
        made = llama.generate(torch.tensor([ids]), max_new_tokens=32, do_sample=False, pad_token_id=2)[0].tolist()
        best = llama(torch.tensor([made])).logits[0, len(ids) - 1 : -1].topk(2).values
    new = made[len(ids) :]
    gaps = (best[:, 0] - best[:, 1]).tolist()
    return {"prompt": text, "prompt_ids": ids, "ids": new, "text": tokens.decode(new), "gaps": [round(gap, 4) for gap in gaps]}


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    reader = gguf.GGUFReader(TARGET)
    tokens = tokenizer(reader)
    cases = [{"text": text, "ids": tokens.encode(text).ids} for text in TEXTS]
    for case in cases:
        case["decoded"] = tokens.decode(case["ids"], skip_special_tokens=False)
    llama = model(reader)
    made = [generation(llama, tokens, prompt) for prompt in PROMPTS]
    save_json(GOLDEN / "smollm2.json", {"file": TARGET.name, "versions": versions(), "tokenize": cases, "greedy_float32": made})
    for item in made:
        print(repr(item["text"]), min(item["gaps"]))


if __name__ == "__main__":
    main()
