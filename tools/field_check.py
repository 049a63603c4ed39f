#!/usr/bin/env python3
"""Check a checkpoint that nibble wrote with the libraries of the field.

    field_check.py FOLDER [--source BF16_FOLDER] [--reference FILE_OR_FOLDER] [--producer compressed-tensors|modelopt]
    field_check.py all [--nibble build/release/nibble] [--work DIR] [--family F…] [--format F…]
    field_check.py self-test

FOLDER is decoded by its own format's library (compressed-tensors, ModelOpt, transformers). Then:
  * reference: nibble's own dequantized weights (`nibble quantize FOLDER OUT --format bf16`) must be the same bits;
  * source: every tensor of the source must be there; the unquantized ones are the same bits, the others near;
  * producer: the stored bytes must be those that the named library makes from the source;
  * transformers must load FOLDER, where it can read the format, with the same weights, and give the logits of a dense
    model with these weights.
`all` makes every family × format with nibble and does all of this; `make check` runs it. Exit code 1 on a difference.
Run with build/oracles/bin/python (tools/oracles/setup.sh).
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

from oracles import ct, readers, tiny, tiny_quant

FORMATS = {  # nibble's name -> name of the compressed-tensors scheme in oracles.ct
    "int4-g32": "int4_g32",
    "int4-g32-asym": "int4_g32_asym",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
    "mxfp8": "mxfp8",
    "fp8-block": "fp8_block",
    "fp8-channel": "fp8_channel",
    "fp8-tensor": "fp8_tensor",
}
FAMILIES = ("qwen3_moe", "gpt_oss", "deepseek_v3", "kimi_k2", "glm4_moe", "minimax_m2", "mixtral")
LARGEST_ERROR = 0.16  # relative, root mean square, of a random weight in the coarsest format


class Report:
    """Collects findings; a failed one decides the exit code."""

    def __init__(self, name):
        self.name, self.lines, self.failures = name, [], 0

    def add(self, ok, text):
        self.lines.append(("ok  " if ok else "FAIL") + " " + text)
        self.failures += not ok

    def note(self, text):
        self.lines.append("note " + text)

    def show(self):
        print(f"{self.name}: {'failed' if self.failures else 'good'}")
        for line in self.lines:
            print(f"  {line}")
        return self.failures == 0


def tensors_of(path):
    path = pathlib.Path(path)
    return readers.dequantized(path) if path.is_dir() else load_file(path)


def as_bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).reshape(-1, tensor.element_size())


def difference(got, want):
    """None where two tensors are the same bits, else what is different."""
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, expected {list(want.shape)}"
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    bits = (as_bits(got) != as_bits(want)).any(1)
    if not bits.any():
        return None
    place = int(bits.nonzero()[0])
    return f"{int(bits.sum())} of {bits.numel()} values, first at {place}: {got.flatten()[place]} instead of {want.flatten()[place]}"


def positive_zeros(tensor):
    """Decoders disagree on the sign of zero, which no computation sees."""
    return torch.where(tensor == 0, torch.zeros_like(tensor), tensor) if tensor.is_floating_point() else tensor


def compare_all(report, title, got, want):
    missing, extra = sorted(want.keys() - got.keys()), sorted(got.keys() - want.keys())
    if missing or extra:
        report.add(False, f"{title}: missing {missing[:3]}, left over {extra[:3]}")
    wrong = {}
    for name in sorted(want.keys() & got.keys()):
        found = difference(positive_zeros(got[name]), positive_zeros(want[name]))
        if found:
            wrong[name] = found
    for name, found in list(wrong.items())[:5]:
        report.add(False, f"{title}: {name}: {found}")
    if not wrong and not missing and not extra:
        report.add(True, f"{title}: {len(want)} tensors are the same bits")
    elif len(wrong) > 5:
        report.add(False, f"{title}: {len(wrong)} tensors differ")


def check_reference(report, dense, reference):
    want = tensors_of(reference)
    for name in want.keys() & dense.keys():
        want[name] = want[name].to(dense[name].dtype)
    compare_all(report, "reference", dense, want)


def check_source(report, dense, source, stored):
    """Kept tensors are copies; quantized ones have a bounded error."""
    want = tensors_of(source)
    kept = {name: tensor for name, tensor in want.items() if name in stored and stored[name].dtype == tensor.dtype}
    compare_all(report, "kept from the source", {name: stored[name] for name in kept}, kept)
    lost = sorted(want.keys() - dense.keys())
    report.add(not lost, f"source: {len(want)} tensors, lost {lost[:3]}")
    worst, where = 0.0, "none quantized"
    for name in want.keys() & dense.keys() - kept.keys():
        if dense[name].shape != want[name].shape:
            report.add(False, f"source: {name}: shape {list(dense[name].shape)}, expected {list(want[name].shape)}")
            continue
        exact = want[name].double()
        error = float((dense[name].double() - exact).norm() / exact.norm().clamp(min=1e-300))
        if not error <= worst:
            worst, where = error, name
    report.add(worst <= LARGEST_ERROR, f"source: relative error at most {worst:.4f} ({where})")


def check_producer(report, folder, source, producer):
    """Stored bytes against what compressed-tensors or ModelOpt makes from the same weights."""
    config, stored = tiny.read(folder)
    weights = tensors_of(source)
    wrong, count = [], 0
    for name, weight in weights.items():
        made = remade(producer, config, weights, name, weight, stored)
        for key, tensor in (made or {}).items():
            count += 1
            found = "absent" if key not in stored else difference(stored[key], tensor)
            if found:
                wrong.append(f"{key}: {found}")
    for text in wrong[:5]:
        report.add(False, f"{producer}: {text}")
    report.add(not wrong and count > 0, f"{producer}: {count - len(wrong)} of {count} stored tensors are its bytes")


def remade_stack(name, weight):
    """ModelOpt's tensors of a stack of (K, N) matrices: one second-level scale for all."""
    parts = [tiny_quant.modelopt_nvfp4(matrix.T.contiguous(), [weight]) for matrix in weight]
    laid_back = {part: torch.stack([made[part].T for made in parts]).contiguous() for part in ("weight", "weight_scale")}
    return {name: laid_back["weight"], f"{name}_weight_scale": laid_back["weight_scale"], f"{name}_weight_scale_2": parts[0]["weight_scale_2"]}


def remade(producer, config, weights, name, weight, stored):
    if producer == "modelopt" and f"{name}_weight_scale" in stored:
        return remade_stack(name, weight)
    module = name.removesuffix("weight")
    if not any(module + part in stored for part in ("weight_packed", "weight_scale")):
        return None
    fused = [weights[other] for other in tiny_quant.fused_with(name)]
    if producer == "modelopt":
        return {module + part: tensor for part, tensor in tiny_quant.modelopt_nvfp4(weight, fused).items()}
    quantization = ct.from_config(config["quantization_config"])
    return {module + part: tensor for part, tensor in ct.compress(weight, quantization, fused).items()}


def cannot_load(config, stored):
    """Why transformers 5.24 does not read this folder (or reads it wrongly), or None."""
    method = readers.method(config)
    if method == "modelopt":
        return "it has no loader for ModelOpt checkpoints"
    if method == "fp8":
        high, wide = config["quantization_config"]["weight_block_size"]
        for name, tensor in stored.items():
            if f"{name}_scale_inv" in stored and any(n > b and n % b for n, b in zip(tensor.shape, (high, wide))):
                return f"it takes partial FP8 blocks for equal ones ({name} {list(tensor.shape)})"
    if method != "compressed-tensors":
        return None
    if config["model_type"] == "gpt_oss":
        return "its gpt-oss loader wants fused experts"
    group = next(iter(config["quantization_config"]["config_groups"].values()))
    kind, weights = config["quantization_config"]["format"], group["weights"]
    if kind.startswith("nvfp4"):
        return "its expert loader drops the global scale"
    if kind.startswith("mxfp8"):
        return "its expert loader cannot expand a group's scale"
    if not weights["symmetric"]:
        return "its expert loader drops the zero points"
    if weights["strategy"] == "block" and any(n.endswith("_scale") and t.dim() == 2 and t.numel() > 1 for n, t in stored.items()):
        return "its expert loader cannot expand a block's scale"
    return None


def load_options(config):
    if readers.method(config) != "compressed-tensors":
        return {}
    from transformers import CompressedTensorsConfig

    return {"quantization_config": CompressedTensorsConfig(dequantize=True)}


def check_forward(report, folder, dense):
    """Logits of the folder as transformers loads it, against a dense model that was given the decoded weights."""
    config, stored = tiny.read(folder)
    with tiny.dense_folder(config, dense) as plain:
        want = tiny.logits(tiny.load(plain, dtype=torch.bfloat16))
    report.add(bool(want.isfinite().all()), "forward: dense model with the decoded weights gives finite logits")
    reason = cannot_load(config, stored)
    if reason:
        report.note(f"transformers does not load this folder: {reason}")
        return want
    try:
        got = tiny.logits(tiny.load(folder, dtype=torch.bfloat16, **load_options(config)))
    except Exception as error:  # noqa: BLE001 - whatever the loader raises is the finding
        report.add(False, f"transformers: {type(error).__name__}: {str(error)[:200]}")
        return want
    report.add(torch.equal(got, want), f"transformers: loads it; logits differ by at most {float((got - want).abs().max())}")
    return want


def check_folder(folder, source=None, reference=None, producer=None, name=None):
    folder = pathlib.Path(folder)
    report = Report(name or str(folder))
    try:
        dense = readers.dequantized(folder)
        report.add(True, f"decoded {len(dense)} tensors as {readers.method(tiny.read(folder)[0])}")
        if reference:
            check_reference(report, dense, reference)
        if source:
            check_source(report, dense, source, tiny.read(folder)[1])
        if producer:
            check_producer(report, folder, source, producer)
        check_forward(report, folder, dense)
    except Exception as error:  # noqa: BLE001
        report.add(False, f"{type(error).__name__}: {str(error)[:400]}")
    return report


def runs(families, formats):
    """(family, format, extra options, producer) that nibble must be able to write."""
    for family in families:
        for kind in formats:
            yield family, kind, [], None
            if family != "gpt_oss":
                yield family, kind, ["--bit-exact-with", "compressed-tensors"], "compressed-tensors"
        if "nvfp4" in formats:
            yield family, "nvfp4", ["--layout", "modelopt"], None
            yield family, "nvfp4", ["--layout", "modelopt", "--bit-exact-with", "modelopt"], "modelopt"
        if family == "gpt_oss" and "mxfp4" in formats:  # by default it is written in its own layout
            yield family, "mxfp4", ["--layout", "compressed-tensors"], None
        if family == "deepseek_v3" and "fp8-block" in formats:  # FP8 wherever the released model has it
            yield family, "fp8-block", ["--layout", "deepseek", "--include", "all_linears"], None


def failure(command):
    """What went wrong, None if nothing."""
    made = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    return f"{' '.join(map(str, command))}: exit code {made.returncode}: {made.stderr.strip()[-400:]}" if made.returncode else None


def run_all(nibble, work, families, formats):
    good = True
    for family, kind, options, producer in runs(families, formats):
        name = "_".join([family, kind, *(option.lstrip("-") for option in options)])
        target, dense = work / name, work / f"{name}_bf16"
        source = tiny.MODELS / family
        title = f"{family} {kind} {' '.join(options)}".strip()
        commands = [
            [nibble, "quantize", source, target, "--format", kind, *options, "--quiet", "--restart"],
            [nibble, "quantize", target, dense, "--format", "bf16", "--quiet", "--restart"],
        ]
        failed = next(filter(None, map(failure, commands)), None)
        if failed:
            report = Report(title)
            report.add(False, failed)
        else:
            report = check_folder(target, source, dense, producer, title)
        good &= report.show()
    return good


def self_test():
    """Folders made by compressed-tensors itself must pass; one changed byte must not."""
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        for family in ("qwen3_moe", "minimax_m2", "kimi_k2", "gpt_oss"):
            for kind, scheme in FORMATS.items():
                config, stored, dense = tiny_quant.compressed_tensors(scheme, family)
                folder = pathlib.Path(scratch) / family / kind
                tiny.write(folder, config, stored)
                reference = folder.with_suffix(".reference")
                save_file(readers.gpt_oss_fused(dense), reference)
                producer = None if family == "gpt_oss" else "compressed-tensors"
                report = check_folder(folder, tiny.MODELS / family, reference, producer, f"{family} {kind} by compressed-tensors")
                good &= report.show()
        good &= must_fail(folder, stored, config, reference)
    for name, source in (("qwen3_moe_int4", "qwen3_moe"), ("qwen3_moe_nvfp4", "qwen3_moe"), ("gpt_oss_mxfp4", "gpt_oss"), ("deepseek_v3_fp8", "deepseek_v3")):
        producer = {"qwen3_moe_int4": "compressed-tensors", "qwen3_moe_nvfp4": "modelopt"}.get(name)
        good &= check_folder(tiny.MODELS / name, tiny.MODELS / source, producer=producer, name=name).show()
    return good


def must_fail(folder, stored, config, reference):
    name = next(n for n, t in stored.items() if t.dtype == torch.float8_e4m3fn)
    changed = stored[name].view(torch.uint8).clone()
    changed[0, 0] ^= 1
    tiny.write(folder, config, {**stored, name: changed.view(torch.float8_e4m3fn)})
    report = check_folder(folder, reference=reference)
    print(f"one changed byte in {name}: {'found' if report.failures else 'NOT FOUND'}")
    return report.failures > 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="a checkpoint folder, `all` or `self-test`")
    parser.add_argument("--source", help="the BF16 folder it was made from")
    parser.add_argument("--reference", help="dequantized weights: a safetensors file or a folder")
    parser.add_argument("--producer", choices=("compressed-tensors", "modelopt"))
    parser.add_argument("--nibble", default="build/release/nibble")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/field_check"))
    parser.add_argument("--family", nargs="*", default=FAMILIES)
    parser.add_argument("--format", nargs="*", default=list(FORMATS))
    return parser.parse_args()


def main():
    options = arguments()
    if options.producer and not options.source:
        sys.exit("--producer needs --source")
    torch.set_num_threads(1)
    if options.folder == "self-test":
        good = self_test()
    elif options.folder == "all":
        good = run_all(options.nibble, options.work, options.family, options.format)
    else:
        good = check_folder(options.folder, options.source, options.reference, options.producer).show()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
