#!/usr/bin/env python3
"""Write tests/golden/numerics: inputs beside what the field's own libraries make of them.

Run with the environment of tools/oracles/setup.sh:
    build/oracles/bin/python tools/make_goldens.py [PREFIX]
Every run with the versions of VERSIONS.json writes the same bytes. PREFIX restricts the files, e.g. `modelopt_nvfp4`.
"""

import argparse
import importlib

from oracles.common import GOLDEN, save_json, save_tensors, versions

SOURCES = ("casts", "ct", "mo", "ggml")
SEEDS = {"plain": 1, "awkward": 2, "maxima": 3, "edge": 4, "whole": 5, "gguf rows": 6, "gguf q4_k": 7, "gguf nvfp4": 8}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", nargs="?", default="", metavar="PREFIX")
    prefix = parser.parse_args().prefix
    folder = GOLDEN / "numerics"
    installed = versions()
    for source in SOURCES:
        for name, tensors, metadata in importlib.import_module(f"oracles.{source}").goldens():
            if name.startswith(prefix):
                metadata["version"] = installed[metadata["library"]]
                save_tensors(folder / f"{name}.safetensors", tensors, metadata)
                print(f"{name}: {len(tensors)} tensors")
    save_json(folder / "VERSIONS.json", {"versions": installed, "seeds": SEEDS})


if __name__ == "__main__":
    main()
