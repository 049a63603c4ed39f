#!/usr/bin/env python3
"""Finds types of one name in one namespace that two files define.

C++ forbids it, no compiler sees it (each file is right on its own), and the linker takes either one's inline functions
for both: a destructor then frees what the other type holds. Types in unnamed namespaces are a file's own.
"""

import argparse
import re
import sys
from pathlib import Path

TOKEN = re.compile(
    r"namespace\s*(?P<namespace>[\w:]*)\s*\{"
    r"|\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?P<type>\w+)(?P<nested>::\w+)?(?:\s+final)?\s*(?::[^:][^;{}()]*)?\{"
    r"|[{}]"
)
# What may hold braces that are no blocks.
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|\\\n', re.S)


def definitions(text):
    """Full names of the types defined at namespace level, unnamed namespaces left out."""
    scopes = []  # name of a namespace, or None for any other block
    for match in TOKEN.finditer(NOISE.sub(" ", text)):
        if match["namespace"] is not None:
            scopes.append(match["namespace"])
        elif match[0] == "}":
            if scopes:
                scopes.pop()
        else:
            if match["type"] and not match["nested"] and all(scopes):
                yield "::".join([*scopes, match["type"]])
            scopes.append(None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    places = {}
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".h", ".cc", ".cu", ".cuh"} or path.stem.endswith("_test"):
            continue
        for name in set(definitions(path.read_text(encoding="utf-8"))):
            places.setdefault(name, []).append(path.relative_to(root).as_posix())
    twice = {name: files for name, files in places.items() if len(files) > 1}
    for name, files in sorted(twice.items()):
        print(f"{name} is defined in {' and in '.join(files)}: give one of them another name")
    print(f"types: {len(places)}, defined twice: {len(twice)}")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
