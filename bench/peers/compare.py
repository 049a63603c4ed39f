#!/usr/bin/env python3
"""nibble's quantizer against the field's, in turns on the same weights, so that all meet the same machine.

    bench/peers/compare.py [--build build/bench] [--rounds 5] [--threads 2] [--layers 2 --experts 64] [--json FILE]

BUILD holds nibble and make_moe. llama.cpp takes part if bench/peers/build_llama_cpp.sh has built it, the Python
libraries if tools/oracles/setup.sh has run. nibble and llama.cpp read files from the page cache and write files; nibble
hashes input and output and syncs; the Python libraries work in memory on a part of one layer (--python-experts), which
favours them. The best of the rounds counts, for everyone. Run nothing else meanwhile: programs that wait at barriers lose
many times their speed when a core is shared. Exit code 3 if nibble is less than --ahead times as fast as any of them.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "peers"
LLAMA = WORK / "llama.cpp" / "bin" / "llama-quantize"
PYTHON = ROOT / "build" / "oracles" / "bin" / "python"
FORMATS = ("int4-g32", "mxfp4", "nvfp4")
BEHIND = 3  # exit code, apart from that of a Python error
LLAMA_TYPES = {"int4-g32": "Q4_0", "mxfp4": "MXFP4_MOE"}


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def prepare(options):
    folder = options.build / "bench_data" / f"moe_{options.layers}x{options.experts}"
    if not (folder / "model.safetensors.index.json").exists():
        run(options.build / "make_moe", folder, options.layers, options.experts, 2048, 768)
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
    begin = time.perf_counter()
    text = run(options.build / "nibble", "quantize", folder, target, "--format", format, "--threads", options.threads, "--quiet", "--json")
    made = json.loads(text)
    return made["bytes_in"], time.perf_counter() - begin, made["peak_rss_bytes"]


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
    found = {}
    for number in range(options.rounds):
        for format in FORMATS:
            for name, body in contestants(folder, model, format, options):
                size, seconds, peak = body()
                row = found.setdefault((format, name), {"format": format, "name": name, "rates": [], "peak_rss_bytes": 0})
                row["rates"].append(size / seconds)
                row["peak_rss_bytes"] = max(peak, row["peak_rss_bytes"])
        print(f"compare: round {number + 1} of {options.rounds}", file=sys.stderr)
    for (format, _), row in found.items():
        row["nibble_is"] = max(found[format, "nibble"]["rates"]) / max(row["rates"])
    return list(found.values())


def show(rows, ahead):
    print(f"{'format':9} {'quantizer':20} {'best GB/s':>9} {'median':>7} {'peak memory':>12}  nibble is")
    for row in rows:
        best, middle = max(row["rates"]) / 1e9, statistics.median(row["rates"]) / 1e9
        verdict = "" if row["name"] == "nibble" else f"{row['nibble_is']:.1f} times as fast, " + ("met" if row["nibble_is"] >= ahead else "missed")
        print(f"{row['format']:9} {row['name']:20} {best:9.3f} {middle:7.3f} {row['peak_rss_bytes'] / 1e6:9.0f} MB  {verdict}".rstrip())
    names = {row["name"].split()[0] for row in rows}
    for name in sorted({"llama.cpp", "compressed-tensors", "modelopt"} - names):
        print(f"{name} did not take part: it is not installed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "bench")
    for name, value in (("rounds", 5), ("threads", 2), ("layers", 2), ("experts", 64), ("python-experts", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--ahead", type=float, default=4.0)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.build = options.build.resolve()
    WORK.mkdir(parents=True, exist_ok=True)
    rows = measure(options)
    print(f"{options.threads} threads, GB/s of BF16 input, {options.rounds} rounds in turns; wanted: {options.ahead:g} times as fast as each")
    show(rows, options.ahead)
    if options.json:
        options.json.write_text(json.dumps({"threads": options.threads, "rounds": options.rounds, "rows": rows}, indent=1) + "\n")
    behind = [row for row in rows if row["name"] != "nibble" and row["nibble_is"] < options.ahead]
    sys.exit(BEHIND if behind else 0)


if __name__ == "__main__":
    main()
