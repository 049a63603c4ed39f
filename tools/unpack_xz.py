#!/usr/bin/env python3
"""unpack_xz.py SOURCE.xz TARGET: unpacks a file, which appears whole. For the build, where no xz need be installed."""

import lzma
import os
import pathlib
import shutil
import sys


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    with lzma.open(source) as packed, open(partial, "wb") as out:
        shutil.copyfileobj(packed, out)
    os.replace(partial, target)


if __name__ == "__main__":
    main()
