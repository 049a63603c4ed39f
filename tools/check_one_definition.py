#!/usr/bin/env python3
"""Lists types that are defined twice under one full name. The list must be empty.

Two types of one name in two headers are legal as long as no file includes both, and no compiler or linker says a word.
But their inline functions and destructors are one symbol, the linker keeps either, and half of the program then frees
memory by the other half's layout. Types in unnamed namespaces and in single .cc files of their own name are safe.
"""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

SOURCES = {".h", ".cc", ".cu", ".cuh"}
NAMESPACE = re.compile(r"^namespace ([\w:]*) ?\{$")
CLOSES = re.compile(r"^\}  // namespace")
# Definitions at namespace scope only: clang-format indents all others.
TYPE = re.compile(r"^(?:struct|class|enum class|enum|union) (?:\[\[\w+\]\] )?(\w+)(?![\w:]*::)[^;]*$")


def definitions(path):
    open_namespaces = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        namespace = NAMESPACE.match(line)
        if namespace:
            open_namespaces.append(namespace[1])
        elif CLOSES.match(line) and open_namespaces:
            open_namespaces.pop()
        elif "" not in open_namespaces and (found := TYPE.match(line)):
            yield "::".join([*open_namespaces, found[1]]), number


def findings(root):
    places = defaultdict(list)
    base = root / "src" / "nibble"
    for path in sorted(base.rglob("*")):
        if path.suffix in SOURCES:
            for name, number in definitions(path):
                places[name].append(f"{path.relative_to(root)}:{number}")
    for name, where in sorted(places.items()):
        if len(where) > 1:
            yield f"{where[0]}: {name} is defined again in {', '.join(where[1:])}: rename one, or hide it in an unnamed namespace"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    found = list(findings(parser.parse_args().root))
    for line in found:
        print(line)
    print(f"types that are defined twice: {len(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
