#!/usr/bin/env python3
"""Compare what nibble's engine makes of a real model (SmolLM2-135M-Instruct) with transformers, token by token.

    field_smollm2_engine.py [--nibble build/release/nibble] [--work build/field_smollm2_engine] [--tokens 128]

transformers in float32 with eager attention writes an answer to ten prompts (128 tokens each, going on behind the end
token). Both programs then read prompt and answer, and choose at each token of the answer: from the BF16 folder, from
INT4 (group 32), MXFP4 and NVFP4 of all linears, and from the GGUF file itself. transformers gets the low-bit weights
decoded to float32 here, which rounded to BF16 must be what the field's own decoder gives; of the GGUF file what the gguf
package decodes. Where the choices differ, the reference's margin between its two best logits must be below twice the
error that was measured over all answers (one logit may be that much too low, the other that much too high); each is
listed. Needs tools/oracles/setup.sh and tools/fetch_smollm2.py; exit code 1 on a difference.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import warnings

import gguf
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

import make_smollm2_golden
from fetch_smollm2 import TARGET
from field_check import Report, compare_all
from oracles import readers, tiny

FORMATS = ("int4-g32", "mxfp4", "nvfp4")
PROMPTS = (
    "What is the capital of France?",
    "Count from 1 to 20.",
    "Write one sentence about the sea.",
    "Explain why the sky is blue to a child.",
    "Write a short poem about autumn leaves.",
    "List five animals that live in the desert.",
    "Write a Python function that adds two numbers.",
    "Translate 'good morning' into Spanish and German.",
    "Who wrote Romeo and Juliet, and what happens in it?",
    "What is 17 times 23? Show each step.",
)
# In logits of about 20; measured are 5e-5, in INT4 2.5e-4. What is far above that is no noise of float32 sums, and would
# excuse every mismatch.
LARGEST_ERROR = 2e-3
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def run(nibble, *arguments):
    command = [str(nibble), *map(str, arguments), "--quiet"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {made.returncode}: {made.stderr.strip()[-400:]}")
    return made.stdout


def nibbles(packed):
    """(rows, columns) codes of four bits, the low half of each byte first."""
    data = packed.contiguous().view(torch.uint8)
    return torch.stack([data & 15, data >> 4], dim=-1).flatten(-2)


def decoded(stored, module):
    """One low-bit weight of compressed-tensors in float32: what the engine multiplies, unrounded."""
    part = lambda name: stored.get(f"{module}.{name}")
    packed, scale = part("weight_packed"), part("weight_scale")
    if packed.dtype == torch.int32:
        values = nibbles(packed).float() - 8
        scale = scale.float()
    else:
        values = E2M1[nibbles(packed).long()]
        scale = torch.exp2(scale.float() - 127) if scale.dtype == torch.uint8 else scale.float()
    if part("weight_global_scale") is not None:
        scale = scale / part("weight_global_scale").float()
    return values * scale.repeat_interleave(values.shape[1] // scale.shape[1], dim=1)


def float32_weights(report, folder):
    """All weights of a folder in float32, checked against the field's decoder."""
    _, stored = tiny.read(folder)
    field = readers.dequantized(folder)
    weights = {}
    for name, tensor in field.items():
        module = name.removesuffix(".weight")
        low_bit = f"{module}.weight_packed" in stored
        weights[name] = decoded(stored, module) if low_bit else tensor.float()
    compare_all(report, "decoded here and by the field, both in BF16", {n: w.to(torch.bfloat16) for n, w in weights.items()}, field)
    return weights


def float32_model(folder, weights):
    """The folder's model in float32 with these weights; every parameter is set."""
    config, _ = tiny.read(folder)
    config.pop("quantization_config", None)
    with tiny.dense_folder({**config, "torch_dtype": "float32"}, weights) as plain:
        model = AutoModelForCausalLM.from_pretrained(plain, dtype=torch.float32, attn_implementation="eager")
    return model.eval()


def answers(model, tokens, count):
    """(prompt, prompt and answer) as ids of each prompt."""
    texts = []
    for prompt in PROMPTS:
        ids = tokens(tokens.apply_chat_template([{"role": "user", "content": prompt}], add_generation_prompt=True, tokenize=False))["input_ids"]
        with torch.no_grad():
            made = model.generate(
                torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), max_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=0
            )
        texts.append((ids, made[0].tolist()))
        if len(texts[-1][1]) != len(ids) + count:
            raise RuntimeError(f"{prompt}: {len(texts[-1][1]) - len(ids)} tokens instead of {count}")
    return texts


def engine_scores(nibble, model, texts, work):
    """nibble's lines by (text, position)."""
    lists, out = work / "tokens.jsonl", work / "scores.jsonl"
    lists.write_text("".join(json.dumps(ids) + "\n" for _, ids in texts))
    run(nibble, "bench", "--perplexity", lists, "--model", model, "--per-token", out, "--kv", "f32", "--json")
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    return {(line["window"], line["position"]): line for line in lines}


def compare(report, nibble, model, reference, texts, tokens, work):
    scores = engine_scores(nibble, model, texts, work)
    error, mismatches, steps = 0.0, [], 0
    for number, (prompt, ids) in enumerate(texts):
        with torch.no_grad():
            logits = reference(torch.tensor([ids])).logits[0]
        best = logits.topk(2)
        for position in range(len(prompt), len(ids)):
            ours, theirs = scores[number, position], logits[position - 1]
            pairs = ((ours["token"], ours["logit"]), (ours["best"], ours["best_logit"]), (ours["second"], ours["second_logit"]))
            error = max(error, *(abs(logit - float(theirs[id])) for id, logit in pairs))
            steps += 1
            first, second = best.indices[position - 1].tolist()
            if ours["best"] != first:
                margin = float(best.values[position - 1, 0] - best.values[position - 1, 1])
                mismatches.append((number, position - len(prompt), ours["best"], first, second, margin))
    for number, step, ours, first, _, margin in mismatches:
        words = [tokens.decode([id]) for id in (ours, first)]
        report.add(margin <= 2 * error, f"prompt {number}, token {step}: {words[0]!r} instead of {words[1]!r}, margin {margin:.1e}")
    report.add(error <= LARGEST_ERROR, f"logits of {steps} choices differ by at most {error:.1e}; {len(mismatches)} choices differ")
    report.add(steps == sum(len(ids) - len(prompt) for prompt, ids in texts), f"{len(texts)} answers")


def guarded(name, body):
    report = Report(name)
    try:
        body(report)
    except Exception as error:  # noqa: BLE001 - whatever a library raises is the finding
        report.add(False, f"{type(error).__name__}: {str(error)[:400]}")
    return report.show()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nibble", default="build/release/nibble")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/field_smollm2_engine"))
    parser.add_argument("--tokens", type=int, default=128, help="of an answer")
    options = parser.parse_args()
    torch.set_num_threads(1)  # many times faster than two where other programs share the cores
    transformers.utils.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    options.work.mkdir(parents=True, exist_ok=True)
    dense = options.work / "bf16"
    run(options.nibble, "quantize", TARGET, dense, "--format", "bf16", "--restart")
    tokens = AutoTokenizer.from_pretrained(dense)
    reference = float32_model(dense, {name: tensor.float() for name, tensor in tiny.read(dense)[1].items()})
    texts = answers(reference, tokens, options.tokens)

    def low_bit(report, format):
        folder = options.work / format
        run(options.nibble, "quantize", dense, folder, "--format", format, "--include", "all_linears", "--restart")
        compare(report, options.nibble, folder, float32_model(folder, float32_weights(report, folder)), texts, tokens, options.work)

    def gguf_file(report):
        compare(report, options.nibble, TARGET, make_smollm2_golden.model(gguf.GGUFReader(TARGET)), texts, tokens, options.work)

    good = guarded("engine, BF16 folder", lambda report: compare(report, options.nibble, dense, reference, texts, tokens, options.work))
    del reference
    for format in FORMATS:
        good &= guarded(f"engine, {format} of all linears", lambda report, f=format: low_bit(report, f))
    good &= guarded(f"engine, {TARGET.name}", gguf_file)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
