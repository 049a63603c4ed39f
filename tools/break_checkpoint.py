#!/usr/bin/env python3
"""Copy a checkpoint and damage it on purpose, in ways that public checkpoints have been wrong: it loads, and speaks
nonsense. Needs nothing but Python.

    break_checkpoint.py FROM TO KIND [PART_OF_NAME]

KIND: reciprocal   second-level scales replaced by 1 / scale (the other library's direction)
      times3       block scales three times too large
      nibbles      the two codes of every byte swapped
      zero-point   every INT4 code moved by 8 (offset taken for two's complement)
PART_OF_NAME: only tensors whose names hold it. nibble.json and its hashes are left out of the copy: a stranger's
checkpoint has none, and the damage must show in the weights.
"""

import array
import json
import mmap
import pathlib
import shutil
import struct
import sys

SECOND_LEVEL = (".weight_global_scale", ".weight_scale_2")
SCALES = (".weight_scale", "_scales", ".weight_scale_inv")
CODES = (".weight_packed", "_blocks")


def swap_nibbles(view):
    view[:] = bytes(view).translate(bytes((b >> 4) | ((b & 15) << 4) for b in range(256)))


def move_by_8(view):
    view[:] = bytes(view).translate(bytes(b ^ 0x88 for b in range(256)))


def reciprocal(view):
    view[:] = b"".join(struct.pack("<f", 1 / value) for (value,) in struct.iter_unpack("<f", view))


def times3(view, dtype):
    if dtype == "BF16":
        values = array.array("H", bytes(view))
        for i, bits in enumerate(values):
            (value,) = struct.unpack("<f", struct.pack("<I", bits << 16))
            (wide,) = struct.unpack("<I", struct.pack("<f", 3 * value))
            values[i] = (wide + 0x7FFF + (wide >> 16 & 1)) >> 16
        view[:] = values.tobytes()
    elif dtype in ("U8", "F8_E8M0"):  # exponents: four times, the nearest there is
        view[:] = bytes(min(b + 2, 254) for b in bytes(view))
    elif dtype == "F32":
        view[:] = b"".join(struct.pack("<f", 3 * value) for (value,) in struct.iter_unpack("<f", view))
    else:
        sys.exit(f"break_checkpoint: scales of type {dtype} cannot be tripled")


KINDS = {"reciprocal": SECOND_LEVEL, "times3": SCALES, "nibbles": CODES, "zero-point": CODES}


def damage(path, kind, part):
    count = 0
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        (size,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + size])
        for name, entry in header.items():
            if name == "__metadata__" or not name.endswith(KINDS[kind]) or part not in name:
                continue
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            with memoryview(data)[begin:end] as view:
                if kind == "times3":
                    times3(view, entry["dtype"])
                else:
                    {"reciprocal": reciprocal, "nibbles": swap_nibbles, "zero-point": move_by_8}[kind](view)
            count += 1
    return count


def main():
    if len(sys.argv) not in (4, 5) or sys.argv[3] not in KINDS:
        sys.exit(__doc__)
    source, target, kind = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("nibble.json"))
    part = sys.argv[4] if len(sys.argv) == 5 else ""
    count = sum(damage(path, kind, part) for path in sorted(target.glob("*.safetensors")))
    if not count:
        sys.exit(f"break_checkpoint: no tensor of {source} ends in {' or '.join(KINDS[kind])} and holds `{part}`")
    print(f"{target}: {kind} in {count} tensors")


if __name__ == "__main__":
    main()
