#!/usr/bin/env python3
"""Counts the source files that name a number format outside the places that define formats. The count must be zero.

A format is one file in numerics/ and one row in a list; whoever else spells its name, even in a comment or a default of
the command line, has to be found again when the next format comes. Tests, documents, data and benchmarks may name
formats: they are about particular ones.
"""

import argparse
import re
import sys
from pathlib import Path

# Formats, not element types: a container's F8_E4M3 or a register of bf16 says nothing about how weights are stored.
FORMAT = re.compile(
    r"(?i:mx_?fp[468]|nv_?fp4|q4_[01k]|q8_0)"
    r"|(?<![a-z])(?i:u?int4)|Int4"  # not print4, but kInt4
    r"|(?<![a-z])(?i:fp[48])(?![0-9])|Fp[48]|FP[48]"
)
MAY_NAME = ("numerics/", "checkpoint/conventions/", "kernels/", "testing/")
SOURCES = {".h", ".cc", ".cu", ".cuh"}


def findings(root):
    base = root / "src" / "nibble"
    for path in sorted(base.rglob("*")):
        name = path.relative_to(base).as_posix()
        if path.suffix not in SOURCES or name.startswith(MAY_NAME) or path.stem.endswith("_test"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = FORMAT.search(line)
            if match:
                yield f"{path.relative_to(root)}:{number}: names the format {match[0]}: ask the list of formats instead"
                break  # the count is of files


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    found = list(findings(parser.parse_args().root))
    for line in found:
        print(line)
    print(f"files that name a format outside the places that define formats: {len(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
