#!/usr/bin/env python3
"""Check what nibble makes of a real GGUF model (SmolLM2-135M-Instruct) with the field's own libraries.

    field_smollm2.py [--nibble build/release/nibble] [--work build/field_smollm2]

  * every tensor of the BF16 folder is the gguf package's dequantization rounded to BF16, bit for bit;
  * AutoTokenizer reads the folder; its ids are those of tests/golden/smollm2.json, and those of transformers' own GGUF
    conversion with the digits' rule that it lacks, over thousands of hard strings; the chat template gives the prompt;
  * transformers loads the folder and writes English;
  * INT4 (group 32), MXFP4 and NVFP4 of all linears: decoded by compressed-tensors the same bits as by nibble, loaded by
    transformers with the same logits, and still English.
Needs tools/oracles/setup.sh and tools/fetch_smollm2.py; exit code 1 on a difference.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys

import gguf
import torch
import transformers
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

import make_smollm2_golden
from fetch_smollm2 import TARGET
from field_check import Report, check_reference, compare_all, load_options
from oracles import readers, tiny
from oracles.common import GOLDEN

FORMATS = ("int4-g32", "mxfp4", "nvfp4")
QUESTION = "What is the capital of France?"
RANGES = [  # of code points that byte-level BPE and its expressions treat differently
    (0x20, 0x7E), (0x20, 0x7E), (0x30, 0x39), (0x00, 0x20), (0x80, 0xFF), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF),
    (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x2000, 0x206F), (0x2150, 0x218F), (0x3000, 0x30FF), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3), (0xFE00, 0xFEFF), (0xFF10, 0xFF19), (0x1F300, 0x1F6FF), (0x1D7CE, 0x1D7FF), (0x20000, 0x20100),
]  # fmt: skip


def hard_texts(count):
    """Seeded strings that mix scripts, digits of several scripts, runs of blanks, line ends and special tokens."""
    draw = random.Random(20240229)
    pieces = ["'s", "'LL", "  ", "\t", "\r\n", "\n\n", "<|im_start|>", "<|im_end|>", "<|im_", "don't", " 12", "3.14", "Ġ", "\u00a0", "\u200d"]
    for _ in range(count):
        text = ""
        for _ in range(draw.randint(1, 24)):
            low, high = draw.choice(RANGES)
            run = "".join(chr(draw.randint(low, high)) for _ in range(draw.randint(1, 4)))
            text += draw.choice(pieces) if draw.random() < 0.25 else run
        yield text


def run(nibble, *arguments):
    command = [str(nibble), *map(str, arguments), "--quiet"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {made.returncode}: {made.stderr.strip()[-400:]}")


def check_weights(report, folder):
    want = {name: tensor.to(torch.bfloat16) for name, tensor in make_smollm2_golden.weights(gguf.GGUFReader(TARGET))}
    compare_all(report, "gguf package, rounded to BF16", tiny.read(folder)[1], want)


def check_tokenizer(report, folder):
    ours = AutoTokenizer.from_pretrained(folder)
    golden = json.loads((GOLDEN / "smollm2.json").read_text())
    wrong = [case["text"] for case in golden["tokenize"] if ours(case["text"])["input_ids"] != case["ids"]]
    report.add(not wrong, f"{type(ours).__name__}: {len(golden['tokenize'])} golden texts, ids differ for {wrong[:3] or 'none'}")
    wrong = [case["text"] for case in golden["tokenize"] if ours.decode(case["ids"]) != case["decoded"]]
    report.add(not wrong, f"decoding differs for {wrong[:3] or 'none'}")

    theirs = AutoTokenizer.from_pretrained(TARGET.parent, gguf_file=TARGET.name).backend_tokenizer
    theirs.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), theirs.pre_tokenizer])
    texts = list(hard_texts(5000))
    wrong = [text for text in texts if ours(text)["input_ids"] != theirs.encode(text).ids]
    report.add(not wrong, f"{len(texts)} hard texts as transformers' GGUF conversion; ids differ for {wrong[:2] or 'none'}")

    case = golden["greedy_float32"][0]
    prompt = ours.apply_chat_template([{"role": "user", "content": QUESTION}], add_generation_prompt=True, tokenize=False)
    report.add(prompt == case["prompt"] and ours(prompt)["input_ids"] == case["prompt_ids"], "the chat template gives the golden prompt")
    report.add((ours.bos_token, ours.eos_token, ours.pad_token, ours.unk_token) == ("<|im_start|>", "<|im_end|>", "<|im_end|>", "<|endoftext|>"), "special tokens")
    return ours


def answer(model, tokens):
    prompt = tokens.apply_chat_template([{"role": "user", "content": QUESTION}], add_generation_prompt=True, return_tensors="pt", return_dict=True)
    with torch.no_grad():
        made = model.generate(**prompt, max_new_tokens=24, do_sample=False)
        logits = model(**prompt).logits
    return tokens.decode(made[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True).strip(), logits


def load(folder, **options):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, attn_implementation="eager", **options).eval()


def check_low_bit(report, nibble, source, folder, format, tokens):
    run(nibble, "quantize", source, folder, "--format", format, "--include", "all_linears", "--restart")
    run(nibble, "quantize", folder, f"{folder}-bf16", "--format", "bf16", "--restart")
    dense = readers.dequantized(folder)
    check_reference(report, dense, f"{folder}-bf16")
    config, _ = tiny.read(folder)
    with tiny.dense_folder(config, dense) as plain:
        text, want = answer(load(plain), tokens)
    got_text, got = answer(load(folder, **load_options(config)), tokens)
    report.add(torch.equal(got, want), f"transformers: logits differ by at most {float((got - want).abs().max())}")
    report.add("Paris" in got_text, f"says {got_text!r}")


def guarded(name, body):
    report = Report(name)
    try:
        result = body(report)
    except Exception as error:  # noqa: BLE001 - whatever a library raises is the finding
        report.add(False, f"{type(error).__name__}: {str(error)[:400]}")
        result = None
    return report.show(), result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nibble", default="build/release/nibble")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/field_smollm2"))
    options = parser.parse_args()
    torch.set_num_threads(1)  # many times faster than two where other programs share the cores
    transformers.utils.logging.set_verbosity_error()
    folder = options.work / "bf16"

    def source(report):
        run(options.nibble, "quantize", TARGET, folder, "--format", "bf16", "--restart")
        check_weights(report, folder)

    def text(report):
        text, _ = answer(load(folder), tokens)
        report.add("Paris" in text, f"says {text!r}")

    good, _ = guarded("GGUF to BF16", source)
    right, tokens = guarded("tokenizer", lambda report: check_tokenizer(report, folder))
    good &= right
    if tokens:
        good &= guarded("transformers", text)[0]
        for format in FORMATS:
            low_bit = options.work / format
            good &= guarded(f"{format} of all linears", lambda report, f=format, t=low_bit: check_low_bit(report, options.nibble, folder, t, f, tokens))[0]
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
