#!/usr/bin/env python3
"""Checks the source tree against layers.toml.

Includes go strictly downward; third-party headers appear only where they are allowed; no file grows without end; no
static registers itself; nobody outside numerics and kernels asks the preprocessor for a backend. One line a finding,
exit status 1 if there is one.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
STANDARD = re.compile(r"^[a-z_]+$")  # C++'s own headers have neither a suffix nor a folder
CONDITIONAL = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b(.*)")
# At file scope: a variable whose initialiser calls something named register, one of a registrar's type, a registration
# macro, a constructor attribute.
SELF_REGISTERING = re.compile(
    r"^(?:static\s+|inline\s+|const\s+|\[\[maybe_unused\]\]\s+)*[\w:<>]+\s+\w+\s*[=({]"
    r"[^;]*\b\w*[Rr]egist(?:er|rar)\w*\s*[({<]"
    r"|^(?:static\s+|inline\s+|const\s+)*\w*Regist(?:rar|ration|er)\w*\s+\w+\s*[({=]"
    r"|^[A-Z_]*REGISTER[A-Z_]*\s*\("
    r"|__attribute__\s*\(\(\s*constructor|\[\[gnu::constructor"
)
SOURCES = {".h", ".cc", ".cu", ".cuh"}


class Checker:
    def __init__(self, root):
        self.root = root
        with open(root / "layers.toml", "rb") as file:
            self.rules = tomllib.load(file)
        self.rank = {module: i for i, module in enumerate(self.rules["order"])}
        self.findings = []
        self.long_files = []

    def refuse(self, path, line, text):
        self.findings.append(f"{path.relative_to(self.root)}:{line}: {text}")

    def run(self):
        for folder in ("src", "tests", "bench"):
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in SOURCES and path.is_file():
                    self.check_file(path)

    def check_file(self, path):
        parts = path.relative_to(self.root).parts
        module = parts[2] if parts[0] == "src" else None
        if parts[0] == "src" and (parts[1] != "nibble" or len(parts) < 4 or module not in self.rank):
            self.refuse(path, 1, f"is in no module of layers.toml (order = {', '.join(self.rank)})")
            return
        is_test = module is None or path.stem.endswith("_test") or module in self.rules["test_only"]
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        self.check_length(path, module, len(lines))
        for number, line in enumerate(lines, 1):
            include = INCLUDE.match(line)
            if include and include[1]:
                self.check_own(path, number, module, is_test, include[1])
            elif include:
                self.check_library(path, number, module, is_test, include[2])
            if module is None:
                continue
            conditional = CONDITIONAL.match(line)
            macros = self.rules["backend_macros"]
            if conditional and module not in macros["modules"] and re.search(macros["pattern"], conditional[1]):
                self.refuse(path, number, "asks the preprocessor for a backend: link another file instead")
            if not is_test and SELF_REGISTERING.search(line):
                self.refuse(path, number, "registers itself: add a row to the module's list file instead")

    def check_length(self, path, module, count):
        limits = self.rules["lines"]
        refused = limits["exceptions"].get(module, limits["refused"])
        if count > refused:
            self.refuse(path, count, f"{count} lines, {refused} is the end: split it")
        elif count > limits["warned"]:
            self.long_files.append(f"{path.relative_to(self.root)} ({count})")

    def check_own(self, path, number, module, is_test, name):
        parts = name.split("/")
        if parts[0] != "nibble" or len(parts) < 3:
            self.refuse(path, number, f'"{name}": name headers from the root, "nibble/module/file.h"')
            return
        target = parts[1]
        if target not in self.rank:
            self.refuse(path, number, f'"{name}": {target} is no module of layers.toml')
        elif target in self.rules["test_only"]:
            if not is_test:
                self.refuse(path, number, f'"{name}": {target} is for tests only')
        elif module is not None and self.rank[target] > self.rank[module]:
            self.refuse(path, number, f'"{name}": {module} may not include {target}, which stands above it')
        if not (self.root / "src" / name).is_file():
            self.refuse(path, number, f'"{name}": there is no such file')

    def check_library(self, path, number, module, is_test, name):
        if STANDARD.match(name):
            return
        for library in self.rules["library"]:
            if not any(name == h or (h.endswith("/") and name.startswith(h)) for h in library["headers"]):
                continue
            users = library["modules"]
            if module is not None and "*" not in users and module not in users:
                self.refuse(path, number, f"<{name}>: {library['name']} is for {', '.join(users)}, not for {module}")
            if library.get("in") == "cc" and path.suffix in {".h", ".cuh"} and not is_test:
                self.refuse(path, number, f"<{name}>: {library['name']} may not stand in a header")
            if library.get("tests") and not is_test:
                self.refuse(path, number, f"<{name}>: {library['name']} is for tests only")
            return
        self.refuse(path, number, f"<{name}>: no library of layers.toml has this header")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    checker = Checker(parser.parse_args().root)
    checker.run()
    for finding in checker.findings:
        print(finding)
    if checker.long_files:
        print(f"note: long files, each still one thing? {', '.join(checker.long_files)}")
    return 1 if checker.findings else 0


if __name__ == "__main__":
    sys.exit(main())
