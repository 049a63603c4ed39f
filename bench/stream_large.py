#!/usr/bin/env python3
"""Score token lists with a model that is larger than the memory, layer by layer, and hold the peak to its promise.

    bench/stream_large.py [--build build/bench] [--layers 20 --experts 64 --hidden 2048 --intermediate 2048] [--keep]

`make_moe` writes a BF16 checkpoint of 32 GB (20 layers of 1.6 GB) below BUILD, `nibble bench --perplexity --stream`
reads it once and scores the lists; without --stream the same command must be refused before weights are read, if the
checkpoint is larger than the free memory. The peak must stay below two layers, the hidden states of all tokens and a
fixed --slack. Exit code 1 if it does not. The checkpoint is removed unless --keep.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys

VOCABULARY = 8192  # make_moe's
ATTENTION = 2 * (1024 + 2 * 256 + 1024)  # bytes of a layer's projections for each hidden unit: 8 heads, 2 of them keys', of 128


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/bench"), help="holds nibble and make_moe")
    parser.add_argument("--layers", type=int, default=20)
    parser.add_argument("--experts", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--intermediate", type=int, default=2048)
    parser.add_argument("--sequences", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=512, help="of a sequence")
    parser.add_argument("--slack", type=int, default=400, help="MB beside layers and states: the program, logits, one expert being packed")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="leave the checkpoint")
    parser.add_argument("--json", type=pathlib.Path, help="where the figures go too")
    return parser.parse_args()


def layer_bytes(options):
    return 2 * options.hidden * options.experts * (3 * options.intermediate + 1) + options.hidden * ATTENTION


def make(options, folder):
    wanted = options.layers * layer_bytes(options) + 4 * VOCABULARY * options.hidden
    if (folder / "model.safetensors.index.json").exists():
        return
    free = shutil.disk_usage(options.build).free
    if free < wanted + (2 << 30):
        sys.exit(f"{options.build}: {free / 1e9:.1f} GB are free, the checkpoint takes {wanted / 1e9:.1f} GB; use fewer --layers")
    sizes = (options.layers, options.experts, options.hidden, options.intermediate)
    subprocess.run([options.build / "make_moe", folder, *map(str, sizes)], check=True, stdout=subprocess.DEVNULL)


def score(options, folder, lists, *more):
    command = [options.build / "nibble", "bench", "--perplexity", lists, "--model", folder, "--threads", str(options.threads), "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


def free_memory():
    fields = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024


def main():
    options = arguments()
    folder = options.build / "bench_data" / "stream_large"
    lists = options.build / "bench_data" / "stream_large.jsonl"
    folder.parent.mkdir(parents=True, exist_ok=True)
    draw = random.Random(5)
    rows = [[draw.randrange(VOCABULARY) for _ in range(options.tokens)] for _ in range(options.sequences)]
    lists.write_text("".join(json.dumps(row) + "\n" for row in rows))
    good = True
    try:
        make(options, folder)
        stored = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        memory = free_memory()
        if stored > memory:
            code, answer = score(options, folder, lists)
            good &= code == 1 and "memory" in answer["error"]["message"]
            print(f"held whole: {answer['error']['message'] if code else 'not refused'} {answer.get('error', {}).get('values', '')}")
        code, answer = score(options, folder, lists, "--stream")
        if code:
            sys.exit(f"streamed: {answer}")
        states = options.sequences * options.tokens * options.hidden * 4
        layer = answer["bytes_held"] - states
        limit = 2 * layer + states + (options.slack << 20)
        good &= answer["peak_rss_bytes"] <= limit
        figures = {"checkpoint": stored, "free_memory": memory, "layer": layer, "states": states, "peak": answer["peak_rss_bytes"], "limit": limit}
        print(", ".join(f"{key.replace('_', ' ')} {value / 1e9:.2f} GB" for key, value in figures.items()))
        print(f"{answer['tokens']} tokens in {answer['seconds']:.0f} s ({stored / answer['seconds'] / 1e9:.2f} GB/s), perplexity {answer['perplexity']:.1f}")
        if options.json:
            options.json.write_text(json.dumps({**figures, **answer}, indent=2) + "\n")
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print("within the limit" if good else "NOT within the limit")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
