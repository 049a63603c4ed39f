#!/usr/bin/env python3
"""Write tests/golden/greedy: what transformers' greedy search makes of the tiny models.

Run with the environment of tools/oracles/setup.sh, after tools/make_tiny_models.py:
    build/oracles/bin/python tools/make_greedy_goldens.py
Four prompts a family, 64 tokens each, in float32 with eager attention and the library's own cache. Beside each token
stand the two largest logits and their ids: where they are close, another order of sums may choose the other one, and
only there. `prompts` is the first seed, counted from 0, whose choices are all clear by `LEAST_MARGIN`.
"""

import argparse
import random

import torch

from oracles import families, tiny
from oracles.common import save_tensors

STEPS = 64
LENGTHS = (5, 16, 33, 75)  # one page, its end passed by the answer, a window of 8 left behind
VOCABULARY = families.BASE["vocab_size"]
LEAST_MARGIN = 1e-4  # five times what float32's sums differ by (engine_test.cc)
SEEDS = 40


def prompts(seed):
    draw = random.Random(seed)
    return [[draw.randrange(VOCABULARY) for _ in range(length)] for length in LENGTHS]


def greedy(model, prompt):
    """(tokens, ids of the two best, their logits) of each step."""
    with torch.no_grad():
        made = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=STEPS,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
            return_dict_in_generate=True,
            output_logits=True,
        )
    tokens = made.sequences[0, len(prompt) :]
    best = torch.cat(made.logits).topk(2)
    assert len(tokens) == STEPS and torch.equal(best.indices[:, 0], tokens), "not the best token each time"
    return tokens, best.indices, best.values


def make(family):
    model = tiny.load(tiny.MODELS / family, dtype=torch.float32)
    model.generation_config.eos_token_id = None  # goes on behind the end token
    for seed in range(SEEDS):
        tensors = {}
        least = float("inf")
        for i, prompt in enumerate(prompts(seed)):
            tokens, ids, logits = greedy(model, prompt)
            least = min(least, float((logits[:, 0] - logits[:, 1]).min()))
            if least < LEAST_MARGIN:
                break
            tensors[f"{i}.prompt"] = torch.tensor(prompt, dtype=torch.int32)
            tensors[f"{i}.ids"] = ids.to(torch.int32)
            tensors[f"{i}.logits"] = logits
        else:
            what = "prompts; ids and logits (64, 2) of the two best tokens of each step of greedy search"
            save_tensors(tiny.MODELS.parent / "greedy" / f"{family}.safetensors", tensors, {"library": "transformers", "prompts": seed, "what": what})
            distinct = len({int(token) for i in range(len(LENGTHS)) for token in tensors[f"{i}.ids"][:, 0]})
            return f"{family}: prompts {seed}, smallest margin {least:.1e}, {distinct} different tokens"
    raise SystemExit(f"{family}: no seed below {SEEDS} whose margins are all above {LEAST_MARGIN}")


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    torch.set_num_threads(1)
    for family in families.configs():
        print(make(family), flush=True)


if __name__ == "__main__":
    main()
