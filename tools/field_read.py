#!/usr/bin/env python3
"""Check that nibble reads what the field's libraries wrote: each checkpoint of tests/golden/models that is not plain
BF16, taken to BF16 by nibble, must hold the same bits as their own decoders give.

    field_read.py [--nibble build/release/nibble] [--work build/field_read]
"""

import argparse
import pathlib
import subprocess
import sys

import torch
from safetensors.torch import load_file

from field_check import Report, compare_all
from oracles import readers, tiny, tiny_gguf
from oracles.common import GOLDEN

MODELS = GOLDEN / "models"


def cases():
    """(source, what it must decode to, extra options)"""
    for folder in sorted(MODELS.iterdir()):
        if not (folder / "config.json").exists():
            continue
        config, _ = tiny.read(folder)
        if folder.name.startswith("linear_"):  # a single layer of no known family
            want = load_file(MODELS / "expected" / f"{folder.name}.safetensors")
            yield folder, {name: tensor.to(torch.bfloat16) for name, tensor in want.items()}, ["--generic", "linear"]
        elif readers.method(config):
            yield folder, readers.dequantized(folder), []
    llama = MODELS / "llama_gguf" / "model.gguf"
    yield llama, {name: tensor.to(torch.bfloat16) for name, tensor in tiny_gguf.llama_weights(llama).items()}, []
    yield MODELS / "gpt_oss_gguf" / "model.gguf", readers.dequantized(MODELS / "gpt_oss_mxfp4"), []


def check(nibble, work, source, want, options):
    name = source.parent.name if source.is_file() else source.name
    report = Report(name)
    target = work / name
    command = [nibble, "quantize", source, target, "--format", "bf16", "--restart", "--quiet", *options]
    made = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if made.returncode:
        report.add(False, f"{' '.join(map(str, command))}: {made.stderr.strip()[-400:]}")
    else:
        compare_all(report, "same as their decoder", load_file(target / "model.safetensors"), want)
    return report.show()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nibble", default="build/release/nibble")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/field_read"))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    good = True
    for source, want, extra in cases():
        good &= check(options.nibble, options.work, source, want, extra)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
