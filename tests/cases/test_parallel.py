"""Cases C43 to C49: cutting weights over ranks, and scales that were cut otherwise than their weights."""

import unittest

from checkpoints import *  # noqa: F403

FP8_BLOCK = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}


def int4_config(group):
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed", "ignore": [],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": {
                "num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": group}}}}


def int4_tensors(module, rows, cols, scale_cols, rng):
    """One pack-quantized matrix with `scale_cols` scale columns, whatever the group size should give."""
    return {
        module + ".weight_packed": ("I32", [rows, cols // 8], bytes(rng.randrange(256) for _ in range(rows * cols // 2))),
        module + ".weight_scale": ("BF16", [rows, scale_cols], pack_bf16([0.01 + 0.001 * (i % 17) for i in range(rows * scale_cols)])),
        module + ".weight_shape": ("I64", [2], struct.pack("<2q", rows, cols)),
    }


class Parallel(CaseTest):
    def quantized(self, format_name, layout="compressed-tensors", **sizes):
        tensors, config = qwen3_moe(layers=1, experts=4, vocabulary=64, **sizes)
        source = write_folder(self.dir / "bf16", tensors, config)
        self.done("quantize", source, self.dir / "q", "--format", format_name, "--layout", layout)
        return self.dir / "q"

    def test_C43_a_split_that_cuts_a_group(self):
        folder = self.quantized("int4-g128", hidden=128, width=640, heads=10, kv_heads=5)
        outcome = self.refused("verify", folder, "--tp", 2, says=[640, 2, 320, 128, "remainder 64", "Legal TP: 1, 5", "EP = 2"])
        cut = [f for f in self.findings(outcome, "error", "parallel-cut") if f["values"].get("width") == "640"]
        self.assertTrue(cut and all(".down_proj." in f["tensor"] for f in cut), "outputs may be cut anywhere")
        for options in (("--tp", 1), ("--tp", 5), ("--ep", 2), ("--ep", 4)):
            self.done("verify", folder, *options)
        self.refused("verify", folder, "--ep", 3, says=[3, 4])

    def test_C47_ranks_that_get_half_a_block(self):
        # 768/4 = 192 and 1536/8 = 192 with blocks of 128; the third, 18432/32 = 576, is of the same kind (here 4608/8).
        for width, ranks, local in ((768, 4, 192), (1536, 8, 192), (4608, 8, 576)):
            folder = self.quantized("fp8-block", "deepseek", hidden=128, width=width)
            self.refused("verify", folder, "--tp", ranks, says=[width, ranks, local, 128, 64])
            shutil.rmtree(folder)

    def test_C45b_one_row_of_scales_covers_gate_and_up(self):
        rows, cols = 640, 256
        rng = random.Random(3)
        codes = bytes(rng.choice([0x30, 0x38, 0x40, 0xB8, 0x3C]) for _ in range(rows * cols))
        scales = [2.0 ** (i - 4) for i in range(10)]  # 5 block rows x 2 block columns, all different
        tensors = {"model.layers.0.mlp.gate_up_proj.weight": ("F8_E4M3", [rows, cols], codes),
                   "model.layers.0.mlp.gate_up_proj.weight_scale_inv": ("F32", [5, 2], pack_f32(scales))}
        folder = write_folder(self.dir / "s", tensors, {"model_type": "x", "quantization_config": FP8_BLOCK})
        self.done("quantize", folder, self.dir / "t", "--format", "bf16")
        values = unpack_bf16(read_folder(self.dir / "t")["model.layers.0.mlp.gate_up_proj.weight"][2])
        for row in (0, 127, 128, 255, 256, 300, 319, 320, 383, 384, 511, 512, 639):  # gate ends at 319
            for col in (0, 127, 128, 255):
                want = e4m3_value(codes[row * cols + col]) * scales[row // 128 * 2 + col // 128]
                self.assertEqual(values[row * cols + col], want, (row, col))

    def test_C45b_stacks_of_fused_experts(self):
        """The 3-D form: gate then up along the rows of each expert; block rows count from the top of the expert."""
        experts, width, hidden = 3, 320, 128
        rng = random.Random(4)
        codes = bytes(rng.choice([0x30, 0x38, 0x40, 0xB8]) for _ in range(experts * 2 * width * hidden))
        scales = [2.0 ** (i % 7 - 3) for i in range(experts * 5)]
        tensors = {"experts.gate_up_proj": ("F8_E4M3", [experts, 2 * width, hidden], codes),
                   "experts.gate_up_proj_scale_inv": ("F32", [experts, 5, 1], pack_f32(scales))}
        folder = write_folder(self.dir / "s", tensors, {"model_type": "x", "quantization_config": FP8_BLOCK})
        self.done("quantize", folder, self.dir / "t", "--format", "bf16")
        out = read_folder(self.dir / "t")
        values = unpack_bf16(out["experts.gate_up_proj"][2])
        for e in range(experts):
            for row in (0, 255, 256, 319, 320, 383, 384, 639):
                at = (e * 2 * width + row) * hidden + 5
                self.assertEqual(values[at], e4m3_value(codes[at]) * scales[e * 5 + row // 128], (e, row))

    def test_C49_the_group_size_comes_from_the_metadata(self):
        rng = random.Random(5)
        config = {"model_type": "x", "quantization_config": int4_config(128)}
        # A rank's part with the scales of the whole: 256 columns of groups of 128 need 2 scale columns, not 16.
        cut = write_folder(self.dir / "cut", int4_tensors("m", 32, 256, 16, rng), config)
        for command in (("verify", cut), ("inspect", cut), ("quantize", cut, self.dir / "t", "--format", "bf16")):
            outcome = self.refused(*command, says=[256, 128, 2, 16]) if command[0] != "inspect" else self.nibble(*command, "--json")
            self.assertNotIn("int4-g16", json.dumps((outcome.json or {}).get("formats", [])))
        self.assertFalse((self.dir / "t").exists())
        # Cut as the weight was, it is read, and each group has its own scale.
        tensors = int4_tensors("m", 32, 256, 2, rng)
        right = write_folder(self.dir / "right", tensors, config)
        self.done("quantize", right, self.dir / "b", "--format", "bf16")
        values = unpack_bf16(read_folder(self.dir / "b")["m.weight"][2])
        packed, scales = tensors["m.weight_packed"][2], unpack_bf16(tensors["m.weight_scale"][2])
        for i in range(0, 32 * 256, 13):
            code = packed[i // 2] >> (4 * (i % 2)) & 15
            self.assertEqual(values[i], bf16_value(bf16_bits((code - 8) * scales[i // 256 * 2 + i % 256 // 128])))
        # The whole: 2048 columns, 16 scale columns; 8 ranks get 2 each, 32 would cut a group.
        whole = write_folder(self.dir / "whole", int4_tensors("m", 32, 2048, 16, rng), config)
        self.done("verify", whole)

    def test_C49_other_formats(self):
        rng = random.Random(6)
        codes = bytes(rng.randrange(256) for _ in range(32 * 128))
        nvfp4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "config_groups": {"group_0": {"weights": {
            "num_bits": 4, "type": "float", "group_size": 16, "dynamic": False}, "targets": ["Linear"]}}}
        cases = {
            "nvfp4": ({"m.weight": ("U8", [32, 128], codes), "m.weight_scale": ("F8_E4M3", [32, 128], b"\x38" * 4096),
                       "m.weight_scale_2": ("F32", [], pack_f32([1.0]))}, nvfp4, [32, 128]),
            "mxfp4": ({"m.weight_packed": ("U8", [32, 128], codes), "m.weight_scale": ("U8", [32, 64], b"\x7f" * 2048)},
                      {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"}, [32, 64]),
            "fp8": ({"m.weight": ("F8_E4M3", [256, 256], bytes(65536)), "m.weight_scale_inv": ("F32", [2, 16], pack_f32([1.0] * 32))},
                    FP8_BLOCK, [256, 128, 2, 16]),
            "gptq": ({"m.qweight": ("I32", [32, 32], codes), "m.qzeros": ("I32", [16, 4], b"\x77" * 256),
                      "m.scales": ("F16", [16, 32], struct.pack("<512e", *([0.01] * 512)))},
                     {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}, [256, 128, 2, 16]),
        }
        for name, (tensors, quantization, numbers) in cases.items():
            folder = write_folder(self.dir / name, tensors, {"model_type": "x", "quantization_config": quantization})
            self.refused("verify", folder, says=["m.", *numbers])
            self.refused("quantize", folder, self.dir / "t", "--format", "bf16", says=["m.", *numbers])
            self.assertFalse((self.dir / "t").exists())


if __name__ == "__main__":
    unittest.main()
