"""Cases of section 1.1: numbers and scales."""

import bisect
import math
import struct
import unittest

from checkpoints import *  # noqa: F403 (the helpers are this suite's vocabulary)


def nvfp4_modelopt(tensors, second):
    """Turns every expert weight into ModelOpt NVFP4 with random codes; second(name) gives weight_scale_2."""
    rng = random.Random(3)
    out = {}
    for name, (dtype, shape, data) in tensors.items():
        if ".experts." not in name:
            out[name] = (dtype, shape, data)
            continue
        module = name[: -len(".weight")]
        rows, cols = shape
        out[name] = ("U8", [rows, cols // 2], bytes(rng.randrange(256) for _ in range(rows * cols // 2)))
        out[module + ".weight_scale"] = ("F8_E4M3", [rows, cols // 16], bytes(rng.randrange(0x30, 0x7F) for _ in range(rows * cols // 16)))
        out[module + ".weight_scale_2"] = ("F32", [], pack_f32([second(name)]))
    return out


E4M3_TABLE = [e4m3_value(c) for c in range(0x7F)]


def e4m3_encode(x):
    """Round to nearest even, saturating."""
    a = min(abs(x), 448.0)
    i = bisect.bisect_left(E4M3_TABLE, a)
    if i > 0:
        below, above = a - E4M3_TABLE[i - 1], E4M3_TABLE[i] - a
        if below < above or (below == above and i % 2 == 1):
            i -= 1
    return i | (0x80 if x < 0 else 0)


MODELOPT = {"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4", "ignore": ["lm_head"], "config_groups": {"group_0": {
    "weights": {"dynamic": False, "num_bits": 4, "type": "float", "group_size": 16}, "targets": ["Linear"]}}}


class Numbers(CaseTest):
    def test_C01_gate_and_up_with_their_own_second_level_scales(self):
        tensors, config = qwen3_moe(experts=2)
        low, high = f32(3.85e-5), f32(4.83e-5)
        packed = nvfp4_modelopt(tensors, lambda name: high if "up_proj" in name else low)
        config["quantization_config"] = MODELOPT
        write_folder(self.dir / "nv", packed, config)
        outcome = self.nibble("verify", self.dir / "nv", "--json")
        warnings = self.findings(outcome, "warning")
        self.assertTrue(any("1.25" in json.dumps(f) and "gate_proj" in json.dumps(f) for f in warnings), outcome.text)
        self.done("quantize", self.dir / "nv", self.dir / "bf16", "--format", "bf16")
        decoded = read_folder(self.dir / "bf16")
        for name, (_, _, codes) in packed.items():
            if ".experts." not in name or not name.endswith(".weight"):
                continue
            module = name[: -len(".weight")]
            scales = packed[module + ".weight_scale"][2]
            second = unpack_f32(packed[module + ".weight_scale_2"][2])[0]
            cols = decoded[name][1][1]
            values = unpack_bf16(decoded[name][2])
            for i in range(0, len(values), 7):
                code = codes[i // 2] >> (4 * (i % 2)) & 15
                scale = e4m3_value(scales[i // cols * (cols // 16) + i % cols // 16])
                self.assertAlmostEqual(values[i], E2M1[code] * scale * second, delta=abs(values[i]) * 2.0**-8)

    def test_C03_gate_and_up_share_one_second_level_scale(self):
        tensors, config = qwen3_moe(layers=1, experts=4)
        rng = random.Random(5)
        for name in list(tensors):
            if ".experts." in name:
                peak = 3.0 if "up_proj" in name else 1.0
                values = [rng.uniform(-0.9, 0.9) * peak for _ in range(numel(tensors[name][1]))]
                values[5] = peak
                tensors[name] = ("BF16", tensors[name][1], pack_bf16(values))
        modelopt = self.quantize(tensors, config, "--format", "nvfp4", "--layout", "modelopt")
        for projection in ("gate", "up"):
            name = "model.layers.0.mlp.experts.0.%s_proj.weight_scale_2" % projection
            self.assertEqual(struct.unpack("<f", modelopt[name][2])[0], f32(3.0 / 2688))
        block = modelopt["model.layers.0.mlp.experts.0.gate_proj.weight_scale"][2]
        self.assertAlmostEqual(max(e4m3_value(b) for b in block), 448 / 3, delta=448 / 3 / 16)
        ct = self.quantize(tensors, config, "--format", "nvfp4", "--layout", "compressed-tensors", target="ct")
        for projection in ("gate", "up"):
            name = "model.layers.0.mlp.experts.0.%s_proj.weight_global_scale" % projection
            self.assertEqual(unpack_f32(ct[name][2]), [896.0])

    def test_C09_fp8_zero_tile(self):
        tensors, config = qwen3_moe(layers=1, hidden=256, width=256, heads=4, kv_heads=2)
        name = "model.layers.0.mlp.experts.1.up_proj.weight"
        tensors[name] = ("BF16", [256, 256], pack_bf16([1.0] + [0.0] * 65535))
        for layout, suffix in (("deepseek", "_scale_inv"), ("compressed-tensors", "_scale")):
            out = self.quantize(tensors, config, "--format", "fp8-block", "--layout", layout, target=layout)
            codes = out[name][2]
            dtype, shape, data = out[name + suffix]
            scales = unpack_f32(data) if dtype == "F32" else unpack_bf16(data)
            self.assertEqual(shape, [2, 2])
            self.assertEqual(scales[0], f32(1 / 448) if dtype == "F32" else bf16_value(bf16_bits(1 / 448)))
            self.assertEqual(codes[0], 0x7E)
            self.assertEqual(set(codes[1:]), {0})
            self.assertTrue(all(math.isfinite(s) and s > 0 for s in scales), scales)

    def test_C11_second_level_scale_keeps_block_scales_in_range(self):
        tensors, config = qwen3_moe(layers=1)
        rng = random.Random(1)
        for name in list(tensors):
            if ".experts." in name:
                values = [rng.uniform(-9e-5, 9e-5) for _ in range(numel(tensors[name][1]))]
                values[0] = 1e-4
                tensors[name] = ("BF16", tensors[name][1], pack_bf16(values))
        out = self.quantize(tensors, config, "--format", "nvfp4", "--layout", "modelopt")
        for name, (_, _, data) in out.items():
            if name.endswith("weight_scale"):
                self.assertEqual(max(data), 0x7E, name)
        # (b) the smallest scale there is must not be flushed.
        tensors, config = qwen3_moe(layers=1)
        packed = nvfp4_modelopt(tensors, lambda name: 1.0)
        for name in list(packed):
            if ".experts." in name and name.endswith("weight_scale"):
                packed[name] = (packed[name][0], packed[name][1], b"\x01" * len(packed[name][2]))
            elif ".experts." in name and name.endswith(".weight"):
                packed[name] = (packed[name][0], packed[name][1], b"\x77" * len(packed[name][2]))
        config["quantization_config"] = MODELOPT
        out = self.quantize(packed, config, "--format", "bf16", source="b", target="b16")
        for name, (_, _, data) in out.items():
            if ".experts." in name:
                self.assertEqual(set(unpack_bf16(data)), {0.01171875})

    def test_C31_odd_columns_are_refused(self):
        for format_name, block in (("mxfp4", 32), ("nvfp4", 16)):
            write_folder(self.dir / "odd", {"a.weight": ("BF16", [4, 33], pack_bf16([0.1] * 132))}, {"model_type": "odd"})
            self.refused("quantize", self.dir / "odd", self.dir / "out", "--format", format_name, "--generic", "a", says=["a.weight", 33, block])
            self.assertFalse((self.dir / "out").exists())

    def test_C58_power_of_two_scales_are_rounded_before_quantizing(self):
        tensors, config = qwen3_moe(layers=1, hidden=128, width=128)
        name = "model.layers.0.mlp.experts.0.up_proj.weight"
        rng = random.Random(9)
        values = [rng.uniform(-400, 400) for _ in range(128 * 128)]
        values[7] = 500.0
        tensors[name] = ("BF16", [128, 128], pack_bf16(values))
        out = self.quantize(tensors, config, "--format", "fp8-block", "--rule", "fp8.ue8m0", "--layout", "deepseek")
        scale = unpack_f32(out[name + "_scale_inv"][2])[0]
        self.assertEqual(scale, 2.0)
        self.assertEqual(e4m3_value(out[name][2][7]) * scale, 512.0 if bf16_value(bf16_bits(500.0)) == 500.0 else None)
        source = unpack_bf16(tensors[name][2])
        for x, code in zip(source, out[name][2]):
            if abs(x) >= 2.0**-6 * scale:
                self.assertLessEqual(abs(e4m3_value(code) * scale - x), abs(x) * 2.0**-4)

    def test_C58_verify_proves_the_order(self):
        rng = random.Random(2)
        for wrong in (False, True):
            tensors, config = qwen3_moe(layers=1, hidden=128, width=128, experts=22)
            packed = {}
            for name, entry in tensors.items():
                if ".experts." not in name:
                    packed[name] = entry
                    continue
                amax = rng.uniform(100, 1000)
                values = [max(-amax, min(amax, rng.gauss(0, amax / 3.5))) for _ in range(128 * 128)]
                values[3] = amax
                exact = amax / 448
                stored = 2.0 ** math.ceil(math.log2(exact))
                used = exact if wrong else stored
                packed[name] = ("F8_E4M3", [128, 128], bytes(e4m3_encode(v / used) for v in values))
                packed[name + "_scale_inv"] = ("F32", [1, 1], pack_f32([stored]))
            config["quantization_config"] = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}
            folder = write_folder(self.dir / ("wrong" if wrong else "right"), packed, config)
            outcome = self.nibble("verify", folder, "--json")
            self.assertEqual(outcome.code, 1 if wrong else 0, outcome.text)
            self.assertEqual(bool([f for f in self.findings(outcome, "error") if "order" in f["rule"]]), wrong, outcome.text)

    def test_C59_scale_inv_multiplies_in_every_type(self):
        for dtype, data in (("F32", pack_f32([0.5])), ("BF16", pack_bf16([0.5])), ("F8_E8M0", bytes([126]))):
            folder = write_folder(self.dir / dtype, {"w.weight": ("F8_E4M3", [128, 128], b"\x38" * 16384), "w.weight_scale_inv": (dtype, [1, 1], data)},
                                  {"model_type": "x", "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})
            self.done("quantize", folder, self.dir / (dtype + "_out"), "--format", "bf16")
            out = read_folder(self.dir / (dtype + "_out"))
            self.assertEqual(set(unpack_bf16(out["w.weight"][2])), {0.5})

    def test_a_search_of_one_scale_for_the_matrix(self):
        tensors, config = qwen3_moe(layers=1)
        name = "model.layers.0.mlp.experts.1.down_proj.weight"
        # The rule's scale puts nearly all of them halfway between two codes.
        values = [bf16_value(bf16_bits((-1) ** i * 1.0625 * 128 / 448)) for i in range(64 * 32)]
        values[5] = 1.0
        tensors[name] = ("BF16", tensors[name][1], pack_bf16(values))
        plain = self.quantize(tensors, config, "--format", "fp8-tensor", target="plain")
        searched = self.quantize(tensors, config, "--format", "fp8-tensor", "--rule", "mse.fp8.amax", "--threads", "1")
        self.quantize(tensors, config, "--format", "fp8-tensor", "--rule", "mse.fp8.amax", "--threads", "3", target="again")
        self.assertEqual((self.dir / "target/model.safetensors").read_bytes(), (self.dir / "again/model.safetensors").read_bytes())
        errors = {}
        for what, stored in (("plain", plain), ("searched", searched)):
            dtype, _, scale = stored[name + "_scale"]
            errors[what] = (unpack_f32(scale) if dtype == "F32" else unpack_bf16(scale))[0]
            decoded = [e4m3_value(code) * errors[what] for code in stored[name][2]]
            errors[what] = errors[what], sum((x - y) ** 2 for x, y in zip(values, decoded))
        self.assertLess(errors["searched"][1], 0.5 * errors["plain"][1])
        self.assertIn(errors["searched"][0], [f32(f32(1 / 448) * i / 32) for i in range(16, 33)])
        self.assertTrue(self.done("verify", self.dir / "target", "--rederive", "--against", self.dir / "source").json["ok"])

    def test_C85_both_int4_rules(self):
        values = ([float(v) for v in range(-7, 8)] + [float(v) for v in range(-7, 8)] + [0.0, 0.0]) * (64 * 32 // 32)
        tensors, config = qwen3_moe(layers=1)
        name = "model.layers.0.mlp.experts.0.gate_proj"
        tensors[name + ".weight"] = ("BF16", [32, 64], pack_bf16(values))
        # With the scale rounded to BF16 first (0.93359375 > 7/7.5), -7 is no tie any more and comes back as -6.5352.
        for rule, scale, low, high in (("int4.amax7", 1.0, -7.0, 7.0), ("int4.amax7_5", 0.9333, -6.5352, 6.5352)):
            out = self.quantize(tensors, config, "--format", "int4-g32", "--rule", rule, target=rule)
            stored = unpack_bf16(out[name + ".weight_scale"][2])[0]
            self.assertAlmostEqual(stored, scale, delta=scale * 2.0**-8)
            packed = out[name + ".weight_packed"][2]
            codes = [packed[i // 2] >> (4 * (i % 2)) & 15 for i in range(15)]
            self.assertAlmostEqual((codes[0] - 8) * stored, low, delta=0.03)
            self.assertAlmostEqual((codes[14] - 8) * stored, high, delta=0.03)
            config_out = json.loads((self.dir / rule / "config.json").read_text())
            self.assertIn(rule, json.dumps(config_out))


if __name__ == "__main__":
    unittest.main()
