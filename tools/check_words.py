#!/usr/bin/env python3
"""The repository speaks of the project alone: no paths of one machine, no addresses of package hosts, no traces of how
the work was organised. Reads what git tracks or would track; without git, the whole folder.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

FORBIDDEN = [
    (re.compile(r"(?<![\w.$}])/(?:work|root|home|Users)/[\w.]"), "a path of one machine"),
    (re.compile(r"//(?:[\w-]+\.)*(?:pypi\.org|pythonhosted\.org|debian\.org|npmjs\.org|crates\.io)"), "a package host"),
    (re.compile(r"\b(?:sub-?agents?|(?:this|previous|next|helper) session|as an? (?:AI|language model))\b", re.I),
     "how the work was organised"),
]
# Corpora and golden data are the outside world's; this file and its test spell what they look for.
SKIPPED = ("tests/fuzz/corpus/", "tests/golden/", "third_party/", "tools/check_words.py", "tests/gates/gates_test.py")
BINARY = {".safetensors", ".gguf", ".bin", ".png", ".xz", ".gz"}


def tracked(root):
    if (root / ".git").exists():
        names = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                               check=True, capture_output=True).stdout.decode().split("\0")
        return [root / name for name in names if name]
    return [path for path in root.rglob("*") if path.is_file()]


def findings(root):
    for path in sorted(tracked(root)):
        name = path.relative_to(root).as_posix()
        if path.suffix in BINARY or not path.is_file() or name.startswith(SKIPPED):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            for pattern, what in FORBIDDEN:
                match = pattern.search(line)
                if match:
                    yield f"{name}:{number}: {what}: {match[0]!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    found = list(findings(parser.parse_args().root))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
