#!/usr/bin/env python3
"""Perplexity of a real model (SmolLM2-135M-Instruct) on a text, in nibble's formats beside llama.cpp's own.

    bench/peers/perplexity.py TEXT [--build build/bench] [--bytes 200000] [--context 512] [--json FILE]

TEXT is a file, or a folder whose .txt files are taken in order; its first --bytes are scored. nibble: the GGUF file
itself, and made of it the BF16 folder, INT4 (group 32), MXFP4 and NVFP4 of all linears, each with float32 activations.
llama.cpp (bench/peers/build_llama_cpp.sh builds it): the GGUF file itself, and what its quantizer makes of that.

Both score the same windows: the text's tokens in rows of --context, each from nothing; counted are the tokens of the
second half behind its first one (llama.cpp foretells n - 1 - n/2 of n tokens); a last row that is not full is left out.
A tokenizer that begins texts with a token puts it in the place of each row's first one, in both; this model's does not.
What is left between the two on the same file is arithmetic: llama.cpp rounds activations to 8 bits in blocks of 32
before it multiplies and keeps keys and values in half precision, nibble here keeps float32 and BF16. The numbers of
windows are compared, and the exit code is 1 if they, or the two figures of the same file, are further apart than that
explains (--near, relative).
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "peers" / "perplexity"
LLAMA = ROOT / "build" / "peers" / "llama.cpp" / "bin"
MODEL = ROOT / "build" / "models" / "smollm2-135m-instruct" / "SmolLM2-135M-Instruct.Q4_1.gguf"
FORMATS = ("bf16", "int4-g32", "mxfp4", "nvfp4")
LLAMA_TYPES = ("Q8_0", "Q4_0", "Q4_1", "Q4_K_M", "IQ4_NL")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1500:]}")
    return done.stdout + done.stderr


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "bench", help="holds nibble")
    parser.add_argument("--bytes", type=int, default=200_000)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--near", type=float, default=0.02)
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def prepare_text(options):
    """The first bytes of the text, up to the end of a line."""
    files = sorted(options.text.rglob("*.txt")) if options.text.is_dir() else [options.text]
    data = b""
    for path in files:
        data += path.read_bytes()[: options.bytes - len(data)]
    if not data:
        sys.exit(f"{options.text}: no text is there")
    target = WORK / "text.txt"
    target.write_bytes(data[: data.rfind(b"\n") + 1] or data)
    return target


def nibble(options, model, text):
    out = run(options.build / "nibble", "bench", "--perplexity", text, "--model", model, "--context", options.context, "--threads", options.threads, "--json", "--quiet")
    made = json.loads(out)
    return {"perplexity": made["perplexity"], "error": made["perplexity"] * made["standard_error"], "windows": made["windows"], "tokens": made["tokens"]}


def llama(options, model, text):
    out = run(LLAMA / "llama-perplexity", "-m", model, "-f", text, "-c", options.context, "-t", options.threads, "-ngl", 0)
    final = re.search(r"Final estimate: PPL = ([\d.]+) \+/- ([\d.]+)", out)
    chunks = re.search(r"calculating perplexity over (\d+) chunks", out)
    if not final or not chunks:
        sys.exit(f"llama-perplexity said something else:\n{out[-1500:]}")
    windows = int(chunks[1])
    return {"perplexity": float(final[1]), "error": float(final[2]), "windows": windows, "tokens": windows * (options.context - 1 - options.context // 2)}


def bits(path, parameters=134_515_008):
    """Of a weight, embedding and all."""
    files = path.glob("*.safetensors") if path.is_dir() else [path]
    return 8 * sum(file.stat().st_size for file in files) / parameters


def measure(options, text):
    rows = []
    add = lambda program, name, path, figures: rows.append({"program": program, "format": name, "bits_per_weight": bits(path), **figures})
    add("nibble", MODEL.name, MODEL, nibble(options, MODEL, text))
    dense = WORK / "bf16"
    for name in FORMATS:
        folder = WORK / name
        source, what = (MODEL, ()) if name == "bf16" else (dense, ("--include", "all_linears"))
        run(options.build / "nibble", "quantize", source, folder, "--format", name, *what, "--restart", "--quiet")
        add("nibble", name, folder, nibble(options, folder, text))
    if not (LLAMA / "llama-perplexity").exists():
        print("llama.cpp is not built (bench/peers/build_llama_cpp.sh)")
        return rows
    add("llama.cpp", MODEL.name, MODEL, llama(options, MODEL, text))
    for name in LLAMA_TYPES:
        made = WORK / f"{name}.gguf"
        run(LLAMA / "llama-quantize", "--allow-requantize", MODEL, made, name, options.threads)
        add("llama.cpp", name, made, llama(options, made, text))
    return rows


def judge(options, rows):
    """What is wrong, in words."""
    counted = {(row["windows"], row["tokens"]) for row in rows}
    if len(counted) != 1:
        yield f"windows and tokens differ: {sorted(counted)}"
    same = {row["program"]: row["perplexity"] for row in rows if row["format"] == MODEL.name}
    if len(same) == 2:
        apart = same["nibble"] / same["llama.cpp"] - 1
        print(f"the same file in both: {100 * apart:+.2f} %")
        if abs(apart) > options.near:
            yield f"the same file differs by {100 * apart:.2f} %"


def main():
    options = arguments()
    WORK.mkdir(parents=True, exist_ok=True)
    rows = measure(options, prepare_text(options))
    print(f"{'program':<10} {'format':<34} {'bits':>6} {'perplexity':>11} {'error':>7} {'windows':>8} {'tokens':>7}")
    for row in rows:
        print(f"{row['program']:<10} {row['format']:<34} {row['bits_per_weight']:>6.2f} {row['perplexity']:>11.4f} {row['error']:>7.4f} {row['windows']:>8} {row['tokens']:>7}")
    wrong = list(judge(options, rows))
    for line in wrong:
        print("wrong:", line)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
