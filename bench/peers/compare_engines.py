#!/usr/bin/env python3
"""nibble's engine against llama.cpp and ik_llama.cpp, in turns on the same GGUF files, with as many threads as there are cores.

    bench/peers/compare_engines.py [--nibble build/release/nibble] [--models NAME…] [--engines NAME…] [--json FILE]
        [--prompts 512 2048] [--contexts 0 2048 8192] [--decode 32] [--threads N] [--rounds 1]

Files have real models' shapes and random weights (random_gguf.py): gpt-oss-20b whole, Qwen3-30B-A3B cut to 12 layers. Prompts
are measured from nothing, decoded tokens behind a context, which the others have to compute first. Each engine runs as it is
quickest here: llama.cpp repacks, ik_llama.cpp too (-rtr 1). The best of the rounds counts, for everyone.

What it needs, said before it starts and refused where it lacks: 17 GB of disk for the files (4.9 with --models qwen3-30b-a3b)
and 2 GB for the builds; memory for the larger file, once and a quarter, and 3 GB. The first time pip downloads 120 MB and the
builds take 25 minutes on two cores; a round takes an hour there, most of it in the contexts that the others compute
(--contexts 0 --prompts 512: 12 minutes). Run nothing else meanwhile: programs that wait at barriers lose many times their
speed when a core is shared.

Exit code 3 if nibble is less than --ahead times as fast as any of them in any row.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import random_gguf

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "peers"
BUILD_BYTES = 2e9
BEHIND = 3  # exit code, apart from that of a Python error
LLAMA, IK = "llama.cpp", "ik_llama.cpp"
PROGRAMS = {LLAMA: WORK / "llama.cpp" / "bin" / "llama-bench", IK: WORK / "ik_llama.cpp" / "bin" / "llama-bench"}
SCRIPTS = {LLAMA: "build_llama_cpp.sh", IK: "build_ik_llama_cpp.sh"}


def say(text):
    print(f"compare_engines: {text}", file=sys.stderr, flush=True)


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


def model_path(name):
    return WORK / f"{name}.gguf"


def available_memory():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def check_room(options):
    sizes = {name: random_gguf.file_bytes(random_gguf.MODELS[name]) for name in options.models}
    missing = sum(size for name, size in sizes.items() if not model_path(name).exists())
    missing += BUILD_BYTES * sum(name in SCRIPTS and not PROGRAMS[name].exists() for name in options.engines) / 2
    free = shutil.disk_usage(WORK).free
    if missing > free:
        sys.exit(f"compare_engines: {missing / 1e9:.1f} GB of disk are needed under {WORK}, {free / 1e9:.1f} GB are free: "
                 "make room, or take --models qwen3-30b-a3b")
    wanted, found = 1.25 * max(sizes.values()) + 3e9, available_memory()
    if found is not None and wanted > found:
        sys.exit(f"compare_engines: {wanted / 1e9:.1f} GB of memory are needed, {found / 1e9:.1f} GB are free: "
                 "end other programs, or take --models qwen3-30b-a3b")


def prepare(options):
    """The engines that take part: those that could be built."""
    if not options.nibble.exists():
        sys.exit(f"compare_engines: {options.nibble} does not exist: run `make build`, or name it with --nibble")
    there = []
    for name in options.engines:
        if name in SCRIPTS and not PROGRAMS[name].exists():
            say(f"building {name}")
            if subprocess.run([ROOT / "bench" / "peers" / SCRIPTS[name]], stdout=sys.stderr).returncode:
                say(f"{name} does not take part: bench/peers/{SCRIPTS[name]} failed")
                continue
        there.append(name)
    for name in options.models:
        if not model_path(name).exists():
            say(f"writing {model_path(name)}")
            unfinished = model_path(name).with_suffix(".part")
            random_gguf.make(unfinished, name, random_gguf.MODELS[name])
            unfinished.rename(model_path(name))
    return there


def into_page_cache(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 24):
            pass


def words(numbers):
    return ",".join(map(str, numbers))


def nibble(model, options):
    """(pass, tokens or context) -> what was measured."""
    command = [options.nibble, "bench", "model", "--model", model, "--tokens", *options.prompts, "--context", *options.contexts]
    made = json.loads(run([*command, "--decode", options.decode, "--threads", options.threads, "--quiet", "--json"]))
    found = {}
    for row in made["rows"]:
        if row["op"] == "load":
            continue
        key = (row["op"], row["tokens"] if row["op"] == "prefill" else row["context"])
        found[key] = {name: row[name] for name in ("tokens_per_s", "percent_of_floor", "ceiling", "check_error")}
    return found


def llama_rows(command):
    """Of a llama-bench: gen behind a prompt is decode behind that context."""
    text = run([*command, "-o", "json"])
    found = {}
    for row in json.loads(text[text.index("[") :]):
        decode = row["n_gen"] > 0
        tokens = row["n_gen"] if decode else row["n_prompt"]
        context = row.get("n_depth", 0) or row["n_prompt"]
        found["decode" if decode else "prefill", context if decode else tokens] = {"tokens_per_s": tokens * 1e9 / row["avg_ns"]}
    return found


def llama(model, options):
    command = [PROGRAMS[LLAMA], "-m", model, "-t", options.threads, "-r", 1]
    prompts = llama_rows([*command, "-p", words(options.prompts), "-n", 0])
    return prompts | llama_rows([*command, "-p", 0, "-n", options.decode, "-d", words(options.contexts)])


def ik_llama(model, options):
    command = [PROGRAMS[IK], "-m", model, "-t", options.threads, "-r", 1, "-rtr", 1, "-p", words(options.prompts)]
    behind = [word for context in options.contexts if context for word in ("-gp", f"{context},{options.decode}")]
    return llama_rows([*command, "-n", options.decode if 0 in options.contexts else 0, *behind])


RUN = {"nibble": nibble, LLAMA: llama, IK: ik_llama}


def measure(engines, options):
    """(model, pass, tokens or context) -> engine -> the best that was measured."""
    best = {}
    for number in range(options.rounds):
        for name in options.models:
            into_page_cache(model_path(name))
            for engine in engines:
                say(f"round {number + 1} of {options.rounds}: {name}, {engine}")
                for (what, count), row in RUN[engine](model_path(name), options).items():
                    found = best.setdefault((name, what, count), {})
                    if engine not in found or found[engine]["tokens_per_s"] < row["tokens_per_s"]:
                        found[engine] = row
    return best


def rows_of(best):
    rows = []
    for (model, what, count), found in best.items():
        others = [row["tokens_per_s"] for engine, row in found.items() if engine != "nibble"]
        row = {"model": model, "pass": what, "tokens" if what == "prefill" else "context": count, "engines": found}
        if others and "nibble" in found:
            row["nibble_is"] = found["nibble"]["tokens_per_s"] / max(others)
        rows.append(row)
    return rows


def show(rows, engines):
    cells = [["model", "pass", *(f"{engine} tok/s" for engine in engines), "% of floor", "bound by", "nibble is"]]
    for row in rows:
        own = row["engines"].get("nibble", {})
        what = f"prefill {row['tokens']}" if row["pass"] == "prefill" else f"decode behind {row['context']}"
        speeds = [f"{row['engines'][engine]['tokens_per_s']:.2f}" if engine in row["engines"] else "-" for engine in engines]
        cells.append([row["model"], what, *speeds, f"{own['percent_of_floor']:.0f}" if own else "-", own.get("ceiling", "-"),
                      f"{row['nibble_is']:.2f} times the best" if "nibble_is" in row else ""])
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    for line in cells:
        print("  ".join(cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths))).rstrip())


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nibble", type=pathlib.Path, default=ROOT / "build" / "release" / "nibble")
    parser.add_argument("--models", nargs="+", choices=list(random_gguf.MODELS), default=list(random_gguf.MODELS))
    parser.add_argument("--engines", nargs="+", choices=list(RUN), default=list(RUN))
    parser.add_argument("--prompts", nargs="+", type=int, default=[512, 2048])
    parser.add_argument("--contexts", nargs="+", type=int, default=[0, 2048, 8192])
    for name, value in (("decode", 32), ("threads", len(os.sched_getaffinity(0))), ("rounds", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--ahead", type=float, default=1.0)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.nibble = options.nibble.resolve()
    return options


def main():
    options = parsed()
    WORK.mkdir(parents=True, exist_ok=True)
    check_room(options)
    engines = prepare(options)
    rows = rows_of(measure(engines, options))
    print(f"{options.threads} threads, tokens a second, best of {options.rounds}; decode: {options.decode} tokens")
    show(rows, engines)
    for name in options.engines:
        if name not in engines:
            print(f"{name} did not take part: it could not be built")
    if options.json:
        options.json.write_text(json.dumps({"threads": options.threads, "rounds": options.rounds, "rows": rows}, indent=1) + "\n")
    sys.exit(BEHIND if any(row.get("nibble_is", options.ahead) < options.ahead for row in rows) else 0)


if __name__ == "__main__":
    main()
