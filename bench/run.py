#!/usr/bin/env python3
"""What `make bench` runs: each part of nibble's speed beside what the machine could do in the same minute.

    bench/run.py BUILD [--part numerics|headers|quantize|peers …] [--rounds 5] [--layers 2 --experts 64] [--json FILE]

  numerics  encoding and decoding in the cache, one thread, against one core's reads and copies of memory
  headers   opening a checkpoint of 500,000 tensors
  quantize  the whole program on an MoE checkpoint from make_moe, page cache warm, every format, 1 and 2 threads; and
            verify of that, with 2 threads, from the disk
  peers     the field's quantizers in turns with nibble (bench/peers/compare.py)

BUILD is a folder with nibble, make_moe and the benchmark programs; tools/run_benchmarks.sh makes it. The machine is
measured (bench/machine_bench.cc) before each part, and before each round of quantize, which divides within the round.
Run nothing else meanwhile. Targets are printed as met or missed; the exit code is 1 only where something fails.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))
from peers import compare  # noqa: E402

PARTS = ("numerics", "headers", "quantize", "plan", "peers")
TARGETS = {  # GB/s of BF16 input a core, hashing included
    "int4-g32": 1.0,
    "int4-g32-asym": None,
    "mxfp4": 1.0,
    "nvfp4": 0.7,
    "mxfp8": None,
    "fp8-block": 1.0,
    "fp8-channel": 1.0,
    "fp8-tensor": 1.0,
}
OPENED_IN_MS = 3000
PLANNED_IN_MS = 50
SEARCHED_IN_MS = 2000


def output_of(command, **environment):
    made = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, **environment})
    if made.returncode:
        sys.exit(f"bench: {' '.join(map(str, command))}: exit code {made.returncode}: {made.stderr.strip()[-600:]}")
    return made.stdout


def google(program, *options, **environment):
    """Rows of a Google Benchmark program by name, one a repetition; all rates by the clock, not by processor time."""
    text = output_of([program, "--benchmark_format=json", *options], **environment)
    rows = {}
    for row in json.loads(text)["benchmarks"]:
        if row["run_type"] != "iteration":
            continue
        if "bytes_per_second" in row and "/real_time" not in row["run_name"]:
            row["bytes_per_second"] *= row["cpu_time"] / row["real_time"]
        rows.setdefault(row["run_name"].replace("/real_time", ""), []).append(row)
    return rows


def machine(build):
    """Rates in bytes a second: read, copy (by threads), sha256, xxh3, disk."""
    rows = google(build / "bench" / "machine_bench", "--benchmark_min_time=0.2", NIBBLE_BENCH_DIR=str(build))
    rate = {name: row[0]["bytes_per_second"] for name, row in rows.items()}
    return {
        "read": {n: rate[f"read_memory/threads:{n}"] for n in (1, 2)},
        "copy": {n: rate[f"copy_memory/threads:{n}"] for n in (1, 2)},
        "sha256": rate["sha256"],
        "xxh3": rate["xxh3_from_memory"],
        "disk": rate["write_and_sync/iterations:2"],
    }


def print_table(title, note, rows):
    print(f"\n== {title}\n{note}\n")
    cells = [list(rows[0]), *(list(map(str, row.values())) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for row in cells:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))).rstrip())
    sys.stdout.flush()


def gb(rate):
    return f"{rate / 1e9:.2f}"


def percent(share):
    return f"{100 * share:.0f} %"


def show_machine(rates):
    rows = [
        {"what": "memory read", "1 thread": gb(rates["read"][1]), "2 threads": gb(rates["read"][2])},
        {"what": "memory copied", "1 thread": gb(rates["copy"][1]), "2 threads": gb(rates["copy"][2])},
        {"what": "SHA-256", "1 thread": gb(rates["sha256"]), "2 threads": ""},
        {"what": "XXH3-128 of memory", "1 thread": gb(rates["xxh3"]), "2 threads": ""},
        {"what": "file written and synced", "1 thread": gb(rates["disk"]), "2 threads": ""},
    ]
    print_table("The machine", f"{processor()}, {os.cpu_count()} processors; GB/s at the start.", rows)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def numerics(options):
    rates = machine(options.build)
    rows = []
    found = google(
        options.build / "bench" / "numerics_bench",
        "--benchmark_min_time=0.05",
        f"--benchmark_repetitions={options.rounds}",
        "--benchmark_enable_random_interleaving=true",
    )
    for name, repeated in sorted(found.items()):
        speeds = [row["bytes_per_second"] for row in repeated]
        rows.append(
            {
                "": name,
                "best GB/s": gb(max(speeds)),
                "median": gb(statistics.median(speeds)),
                "of read": percent(statistics.median(speeds) / rates["read"][1]),
                "of copy": percent(statistics.median(speeds) / rates["copy"][1]),
            }
        )
    print_table("Numerics", "One thread, from and to the cache: bytes of BF16 input (decoding: of float32 output); of what one core reads and copies.", rows)
    return rows


def headers(options):
    rates = machine(options.build)
    rows = []
    for name, repeated in google(options.build / "bench" / "header_bench", f"--benchmark_repetitions={options.rounds}").items():
        times = [row["real_time"] for row in repeated]
        speed = repeated[0].get("bytes_per_second")
        opened = name.startswith("open_checkpoint")
        rows.append(
            {
                "": name,
                "best ms": f"{min(times):.0f}",
                "median": f"{statistics.median(times):.0f}",
                "of read": percent(statistics.median(row["bytes_per_second"] for row in repeated) / rates["read"][1]) if speed else "",
                "peak": f"{max(row['peak_MB'] for row in repeated):.0f} MB" if opened else "",
                "target": f"{OPENED_IN_MS} ms, " + ("met" if statistics.median(times) < OPENED_IN_MS else "missed") if opened else "",
            }
        )
    print_table("Headers", "500,000 tensors in 100 shards with an index of their names (open_checkpoint/THREADS is all of it).", rows)
    return rows


def into_page_cache(folder):
    for path in folder.iterdir():
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 24):
                pass


def out_of_page_cache(folder):
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(body):
    begin = time.perf_counter()
    result = body()
    return time.perf_counter() - begin, result


class Quantized:
    """The rounds of one format and number of threads."""

    def __init__(self):
        self.speed, self.read, self.copy, self.floor, self.hash, self.peak = [], [], [], [], [], 0

    def add(self, seconds, made, threads, rates):
        size, stored = made["bytes_in"], made["bytes_out"]
        speed = size / seconds
        hashing = size / rates["xxh3"] + stored / rates["sha256"]
        self.speed.append(speed)
        self.read.append(speed / rates["read"][threads])
        self.copy.append(speed / rates["copy"][threads])
        self.hash.append(hashing / threads / seconds)
        self.floor.append(max(hashing / threads, stored / rates["disk"]) / seconds)
        self.peak = max(self.peak, made["peak_rss_bytes"])

    def row(self, format, threads):
        each = TARGETS[format]
        speed = statistics.median(self.speed)
        return {
            "": format,
            "threads": threads,
            "best GB/s": gb(max(self.speed)),
            "median": gb(speed),
            "of read": percent(statistics.median(self.read)),
            "of copy": percent(statistics.median(self.copy)),
            "hashing": percent(statistics.median(self.hash)),
            "of floor": percent(statistics.median(self.floor)),
            "peak": f"{self.peak / 1e6:.0f} MB",
            "target": "" if each is None else f"{each * threads:.1f}, " + ("met" if speed >= each * threads * 1e9 else "missed"),
        }


def quantize_once(options, source, target, format, threads):
    shutil.rmtree(target, ignore_errors=True)
    command = [options.build / "nibble", "quantize", source, target, "--format", format, "--threads", threads, "--quiet", "--json"]
    seconds, text = timed(lambda: output_of(command))
    return seconds, json.loads(text)


def verify_cold(options, folder):
    """(GB/s of one sequential reader, GB/s of verify), both from the disk."""
    size = sum(path.stat().st_size for path in folder.iterdir())
    out_of_page_cache(folder)
    disk, _ = timed(lambda: into_page_cache(folder))
    out_of_page_cache(folder)
    seconds, _ = timed(lambda: output_of([options.build / "nibble", "verify", folder, "--threads", 2, "--quiet", "--json"]))
    return size / disk, size / seconds


def quantize(options):
    data = options.build / "bench_data"
    source = data / f"moe_{options.layers}x{options.experts}"
    if not (source / "model.safetensors.index.json").exists():
        output_of([options.build / "make_moe", source, options.layers, options.experts, 2048, 768])
    into_page_cache(source)
    found, disks = {}, {}
    for number in range(options.rounds):
        rates = machine(options.build)
        for format in options.format:
            for threads in (1, 2):
                seconds, made = quantize_once(options, source, data / "out", format, threads)
                found.setdefault((format, threads), Quantized()).add(seconds, made, threads, rates)
            disks.setdefault(format, []).append(verify_cold(options, data / "out"))
        print(f"bench: round {number + 1} of {options.rounds}", file=sys.stderr)
    shutil.rmtree(data / "out", ignore_errors=True)
    rows = [result.row(*key) for key, result in found.items()]
    note = (
        f"{made['bytes_in'] / 1e9:.2f} GB of BF16 in the page cache; GB/s of input, the whole program from start to exit, hashes and sync included; best\n"
        f"and median of {options.rounds}. Of read, of copy: of what as many threads read and copy of memory. Hashing: the share that XXH3 of the input\n"
        "and SHA-256 of the output alone need. Of floor: the longer of hashing, and writing and syncing the output. Target: GB/s, as median."
    )
    print_table("Quantize", note, rows)
    seen = []
    for format, pairs in disks.items():
        share = statistics.median(verify / disk for disk, verify in pairs)
        seen.append(
            {
                "": format,
                "best GB/s": gb(max(verify for _, verify in pairs)),
                "median": gb(statistics.median(verify for _, verify in pairs)),
                "of disk": percent(share),
                "target": "80 %, " + ("met" if share >= 0.8 else "missed"),
            }
        )
    print_table("Verify", "What quantize wrote, dropped from the page cache, 2 threads; against one sequential reader of the same files.", seen)
    return {"quantize": rows, "verify": seen}


def plan(options):
    """Whole runs of the program on one thread, from its start to its exit, for every bundled model."""
    models = sorted(path.stem for path in (pathlib.Path(__file__).resolve().parent.parent / "data" / "models").glob("*.json"))
    nothing = min(timed(lambda: output_of([options.build / "nibble", "--version"]))[0] for _ in range(options.rounds))
    rows = []
    for title, extra, target in (
        ("all formats, as many GPUs as it takes", (), PLANNED_IN_MS),
        ("one format, all layouts of 512 GPUs", ("--gpus", "512", "--format", "mxfp4"), SEARCHED_IN_MS),
    ):
        seconds = {}
        for model in models:
            command = [options.build / "nibble", "plan", model, "--json", "--threads", "1", *extra]
            seconds[model] = min(timed(lambda: subprocess.run(command, capture_output=True))[0] for _ in range(options.rounds))
        slowest = max(seconds, key=seconds.get)
        rows.append(
            {
                "": title,
                "models": len(models),
                "median ms": f"{1e3 * statistics.median(seconds.values()):.1f}",
                "slowest ms": f"{1e3 * seconds[slowest]:.1f}",
                "which": slowest,
                "target": f"{target} ms, " + ("met" if 1e3 * seconds[slowest] < target else "missed"),
            }
        )
    print_table("Plan", f"Best of {options.rounds} runs each; starting the program and ending it at once takes {1e3 * nothing:.1f} ms.", rows)
    return rows


def peers(options):
    print("\n== Peers", flush=True)
    sizes = [word for name in ("rounds", "layers", "experts") for word in (f"--{name}", str(getattr(options, name)))]
    code = subprocess.run([sys.executable, ROOT / "bench" / "peers" / "compare.py", "--build", options.build, *sizes]).returncode
    if code not in (0, compare.BEHIND):
        sys.exit(f"bench: compare.py failed with exit code {code}")
    return code == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--format", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    for name, value in (("rounds", 5), ("layers", 2), ("experts", 64)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json", type=pathlib.Path, help="the tables as JSON, with the machine's rates")
    options = parser.parse_args()
    options.build = options.build.resolve()
    rates = machine(options.build)
    show_machine(rates)
    result = {"machine": rates}
    for part in PARTS:
        if part in options.part:
            result[part] = {"numerics": numerics, "headers": headers, "quantize": quantize, "plan": plan, "peers": peers}[part](options)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
