#!/usr/bin/env python3
"""nibble's quantizer against the field's, in turns on the same weights, so that all meet the same machine.

    bench/peers/compare.py [--rounds 3] [--threads 2] [--layers 4 --experts 64] [--json FILE]

llama.cpp takes part if bench/peers/build_llama_cpp.sh has built it, the Python libraries if tools/oracles/setup.sh has
run. nibble and llama.cpp read files from the page cache and write files; nibble hashes input and output and syncs; the
Python libraries work in memory on a part of one layer (--python-experts), which favours them. The best of the rounds
counts, for everyone. Run nothing else meanwhile: programs that wait at barriers lose many times their speed when a core
is shared. Exit code 1 if nibble is less than --ahead times as fast as any of them.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "peers"
NIBBLE = ROOT / "build" / "release" / "nibble"
LLAMA = WORK / "llama.cpp" / "bin" / "llama-quantize"
PYTHON = ROOT / "build" / "oracles" / "bin" / "python"
FORMATS = ("int4-g32", "mxfp4", "nvfp4")
LLAMA_TYPES = {"int4-g32": "Q4_0", "mxfp4": "MXFP4_MOE"}


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def prepare(options):
    folder = WORK / f"moe_{options.layers}x{options.experts}"
    if not (folder / "model.safetensors.index.json").exists():
        run("cmake", "--build", ROOT / "build" / "release", "--target", "make_moe")
        run(ROOT / "build" / "release" / "make_moe", folder, options.layers, options.experts, 2048, 768)
    model = folder.with_suffix(".gguf")
    if LLAMA.exists() and not model.exists():
        run(PYTHON, ROOT / "bench" / "peers" / "folder_to_gguf.py", folder, model)
    for path in [*folder.iterdir(), *([model] if model.exists() else [])]:  # into the page cache
        with open(path, "rb") as file:
            while file.read(1 << 24):
                pass
    return folder, model


def nibble(folder, format, options):
    target = WORK / "out"
    shutil.rmtree(target, ignore_errors=True)
    made = json.loads(run(NIBBLE, "quantize", folder, target, "--format", format, "--threads", options.threads, "--quiet", "--json"))
    return made["bytes_in"], made["seconds"], made["peak_rss_bytes"]


def llama(model, format, options):
    target = WORK / "out.gguf"
    target.unlink(missing_ok=True)
    begin = time.perf_counter()
    child = subprocess.Popen([LLAMA, model, target, LLAMA_TYPES[format], str(options.threads)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"llama-quantize failed with status {status}")
    return model.stat().st_size, seconds, usage.ru_maxrss * 1024


def python(library, folder, format, options):
    line = run(PYTHON, ROOT / "bench" / "peers" / "python_quantizer.py", library, format, folder, options.threads, options.python_experts)
    made = json.loads(line.strip().splitlines()[-1])
    return made["bytes"], made["seconds"], made["peak"]


def contestants(folder, model, format, options):
    yield "nibble", lambda: nibble(folder, format, options)
    if LLAMA.exists() and format in LLAMA_TYPES:
        yield f"llama.cpp {LLAMA_TYPES[format]}", lambda: llama(model, format, options)
    if PYTHON.exists():
        for library in ("compressed-tensors", "modelopt"):
            yield library, lambda library=library: python(library, folder, format, options)


def measure(options):
    folder, model = prepare(options)
    rows = []
    for format in FORMATS:
        best = {}
        for _ in range(options.rounds):
            for name, body in contestants(folder, model, format, options):
                size, seconds, peak = body()
                rate = size / seconds / 1e9
                if name not in best or rate > best[name]["gb_per_s"]:
                    best[name] = {"format": format, "name": name, "gb_per_s": rate, "peak_rss_bytes": peak}
        for row in best.values():
            rows.append({**row, "nibble_is": best["nibble"]["gb_per_s"] / row["gb_per_s"]})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("rounds", 3), ("threads", 2), ("layers", 4), ("experts", 64), ("python-experts", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--ahead", type=float, default=4.0)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    rows = measure(options)
    print(f"{'format':9} {'quantizer':20} {'GB/s of input':>14} {'peak memory':>12}  nibble is")
    for row in rows:
        print(f"{row['format']:9} {row['name']:20} {row['gb_per_s']:14.3f} {row['peak_rss_bytes'] / 1e6:9.0f} MB  {row['nibble_is']:.1f} times as fast")
    if options.json:
        options.json.write_text(json.dumps({"threads": options.threads, "rounds": options.rounds, "rows": rows}, indent=1) + "\n")
    behind = [row for row in rows if row["name"] != "nibble" and row["nibble_is"] < options.ahead]
    sys.exit(1 if behind else 0)


if __name__ == "__main__":
    main()
