#!/usr/bin/env python3
"""clang-tidy over the files that changed, or over the whole tree.

    tools/tidy.py changed    since the merge base with origin/main; on main itself, since the last commit
    tools/tidy.py all        the whole tree

A unit of work is a source, or about twenty headers of a module together. What was clean once stays clean as long as
nothing that it reads has changed: such units are remembered in ~/.cache/nibble/tidy by a hash over clang-tidy's version
and settings, the command and every file that the unit includes. NIBBLE_TIDY_CACHE names another folder; empty, nothing
is remembered.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "tidy"  # never built: precompiled headers are g++'s
TIDY = "clang-tidy-19"
CLANG = "clang++-19"
HEADERS_PER_UNIT = 20
# The commands are g++'s: clang does not know two of its warnings, and g++ 12's library uses what C++17 deprecates.
EXTRA = ["-Wno-unknown-warning-option", "-Wno-deprecated-declarations"]
# The analyzer walks every path through GoogleTest's macros, four fifths of all time; the sanitizers run these files.
TEST_CHECKS = "--checks=-clang-analyzer-*"


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")


def changed_since():
    base = git("merge-base", "HEAD", "origin/main")[0]
    if base and base != git("rev-parse", "HEAD")[0]:
        return base
    return git("rev-parse", "--verify", "--quiet", "HEAD~1")[0]


def listed_files(which):
    sources = ["--", "*.cc", "*.h"]
    others = git("ls-files", "--others", "--exclude-standard", *sources)
    if which == "all":
        return git("ls-files", "--cached", *sources) + others
    base = changed_since()
    if not base:
        print("tidy: no earlier commit to compare with, so no file counts as changed", file=sys.stderr)
        return []
    return git("diff", "--name-only", "--diff-filter=d", base, *sources) + others


def read_commands():
    subprocess.run(
        ["cmake", "--preset", "release", "-B", BUILD, "-DNIBBLE_PRECOMPILE=OFF", "--log-level=WARNING"],
        cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with open(BUILD / "compile_commands.json") as f:
        return {entry["file"]: entry for entry in json.load(f)}


def header_unit_name(file):
    """The source that includes this header alone, as nibble_check_headers in cmake/ names it."""
    relative = file.removeprefix("src/")
    return str(BUILD / "header_check" / ("".join(c if c.isalnum() else "_" for c in relative) + ".cc"))


def merge_headers(headers, commands):
    """One source for about twenty headers of a module: each spends its time on the same standard headers."""
    folders = {}
    for header in headers:
        folders.setdefault(pathlib.Path(header).parts[2], []).append(header)
    merged = []
    for folder, members in sorted(folders.items()):
        for start in range(0, len(members), HEADERS_PER_UNIT):
            part = members[start : start + HEADERS_PER_UNIT]
            path = BUILD / "header_check" / f"tidy_{folder}_{start // HEADERS_PER_UNIT}.cc"
            text = "".join(f'#include "{h.removeprefix("src/")}"\n' for h in part)
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
            single = commands[header_unit_name(part[0])]
            merged.append({**single, "file": str(path), "command": single["command"].replace(single["file"], str(path))})
    return merged


def find_units(files, commands):
    """Compile commands of what is to be checked; files outside this configuration (the canary) have none."""
    files = sorted({f for f in files if f and (ROOT / f).exists()})
    headers = [f for f in files if f.startswith("src/") and f.endswith(".h") and header_unit_name(f) in commands]
    sources = [commands[str(ROOT / f)] for f in files if str(ROOT / f) in commands]
    return merge_headers(headers, commands) + sources


def compile_arguments(unit):
    """The flags of a unit without what names its output and itself."""
    flags = shlex.split(unit["command"])[1:]
    kept = []
    while flags:
        flag = flags.pop(0)
        if flag == "-o":
            flags.pop(0)
        elif flag != "-c" and flag != unit["file"]:
            kept.append(flag)
    if any(flag.endswith("torch/csrc/api/include") for flag in kept):
        kept += ["-include", str(ROOT / "cmake" / "torch_with_clang.h")]
    return kept + EXTRA


class Cache:
    """Names of units that were clean, as empty files."""

    def __init__(self):
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        folder = os.environ.get("NIBBLE_TIDY_CACHE", os.path.join(home, "nibble", "tidy"))
        self.folder = pathlib.Path(folder) if folder else None
        self.settings = subprocess.run([TIDY, "--version"], capture_output=True).stdout
        self.settings += (ROOT / ".clang-tidy").read_bytes()
        self.hashes = {}

    def hash_of(self, path):
        if path not in self.hashes:
            with open(path, "rb") as f:
                self.hashes[path] = hashlib.file_digest(f, "sha256").digest()
        return self.hashes[path]

    def entry(self, unit, arguments):
        """Where this unit is remembered; None where it cannot be read, so that clang-tidy says why."""
        if self.folder is None:
            return None
        rule = subprocess.run([CLANG, "-M", *compile_arguments(unit), unit["file"]], cwd=unit["directory"],
                              capture_output=True, text=True)
        if rule.returncode != 0:
            return None
        key = hashlib.sha256(self.settings)
        # Another clone of the same tree has the same units.
        key.update(" ".join(arguments).replace(str(ROOT), "").encode())
        for path in shlex.split(rule.stdout.split(":", 1)[1].replace("\\\n", " ")):
            path = os.path.join(unit["directory"], path)
            key.update(path.removeprefix(str(ROOT)).encode())
            key.update(self.hash_of(path))
        return self.folder / key.hexdigest()

    def remember(self, entry):
        self.folder.mkdir(parents=True, exist_ok=True)
        entry.touch()


def check(unit, cache):
    """What clang-tidy says of a unit, or None if it is clean; and whether it was known."""
    arguments = compile_arguments(unit)
    checks = [TEST_CHECKS] if unit["file"].endswith("_test.cc") else []
    entry = cache.entry(unit, checks + arguments)
    if entry is not None and entry.exists():
        return None, True
    result = subprocess.run([TIDY, "--quiet", *checks, unit["file"], "--", *arguments], cwd=ROOT,
                            capture_output=True, text=True)
    if result.returncode != 0:
        return result.stdout + result.stderr, False
    if entry is not None:
        cache.remember(entry)
    return None, False


def main():
    if sys.argv[1:] not in (["changed"], ["all"]):
        sys.exit("usage: tools/tidy.py changed|all")
    commands = read_commands()
    units = find_units(listed_files(sys.argv[1]), commands)
    cache = Cache()
    failed = known = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for unit, (said, was_known) in zip(units, pool.map(lambda u: check(u, cache), units)):
            known += was_known
            if said is not None:
                failed += 1
                print(f"tidy: {os.path.relpath(unit['file'], ROOT)}\n{said}", flush=True)
    print(f"tidy: {len(units)} units, {known} of them clean before, {failed} with findings")
    sys.exit(1 if failed else 0)


main()
