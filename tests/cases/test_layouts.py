"""Cases of section 1.2: layouts and roles."""

import itertools
import re
import unittest

from checkpoints import *  # noqa: F403


def decode_gpt_oss(out, name, rows, cols):
    """name_blocks/name_scales -> [expert][row][col]."""
    blocks, scales = out[name + "_blocks"][2], out[name + "_scales"][2]
    experts = out[name + "_blocks"][1][0]
    values = []
    for e in range(experts):
        matrix = []
        for r in range(rows):
            row = []
            for k in range(cols):
                byte = blocks[((e * rows + r) * cols + k) // 2]
                row.append(E2M1[byte >> (4 * (k % 2)) & 15] * e8m0_value(scales[((e * rows + r) * cols + k) // 32]))
            matrix.append(row)
        values.append(matrix)
    return values


class Layouts(CaseTest):
    def test_C15_the_family_decides_the_orientation_of_a_stack(self):
        tensors, config = gpt_oss()
        name = "model.layers.0.mlp.experts.gate_up_proj"
        # Stored (E, H, 2I): value r/64 at output row r, whatever the input column.
        tensors[name] = ("BF16", [4, 64, 64], pack_bf16([r / 64 for _ in range(4) for _ in range(64) for r in range(64)]))
        out = self.quantize(tensors, config, "--format", "mxfp4")
        values = decode_gpt_oss(out, name, 64, 64)
        for e in range(4):
            for r in range(64):
                row = set(values[e][r])
                self.assertEqual(len(row), 1, "row %d is not constant" % r)
                self.assertLessEqual(abs(row.pop() - r / 64), (r / 64) / 4 + 1e-9)

    def test_C15_an_unknown_family_is_refused_with_both_readings(self):
        for shape, experts in (([4, 64, 64], "4 experts"), ([4, 64, 32], "4 experts"), ([2, 3, 64, 32], "2 x 3 experts")):
            write_folder(self.dir / "s", {"experts.weight": ("BF16", shape, pack_bf16([0.1] * numel(shape)))}, {"model_type": "mystery"})
            for options in ((), ("--generic", "experts")):
                self.refused("quantize", self.dir / "s", self.dir / "t", "--format", "int4-g32", *options,
                             says=["mystery", "experts.weight", str(shape), experts, "64 outputs x %d inputs" % shape[-1],
                                   "64 inputs x %d outputs" % shape[-1], str(self.dir / "s")])
                self.assertFalse((self.dir / "t").exists())

    def test_C23_decisions_by_role_and_whole_path(self):
        tensors, config = qwen3_moe()
        extra = ("BF16", [64, 64], pack_bf16([0.01] * 4096))
        others = ["model.layers.0.mlpXgate.weight", "model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.shared_expert_gate.weight"]
        for name in others:
            tensors[name] = extra
        write_folder(self.dir / "s", tensors, config)
        outcome = self.done("quantize", self.dir / "s", self.dir / "t", "--format", "int4-g32", "--dry-run", "--keep", "name:model.layers.*.mlp.gate")
        rows = {r["name"]: r for r in outcome.json["tensors"]}
        self.assertEqual(len(rows), 48)
        for name in others:
            self.assertEqual(rows[name]["action"], "copied")
            self.assertNotIn("mlp.gate", rows[name]["reason"].replace(name, ""))
        self.assertTrue(all(r["reason"] for r in rows.values()))
        self.assertEqual(rows["model.layers.0.mlp.gate.weight"]["action"], "kept")
        self.assertIn("model.layers.*.mlp.gate", rows["model.layers.0.mlp.gate.weight"]["reason"])
        self.assertEqual(rows["model.layers.0.mlp.experts.3.gate_proj.weight"]["action"], "quantized")
        self.assertEqual(rows["model.layers.0.mlpXgate.weight"]["role"], "unknown")
        self.assertNotIn("mlp.gate`", rows["model.layers.0.mlpXgate.weight"]["reason"])
        self.assertFalse((self.dir / "t").exists())
        self.refused("quantize", self.dir / "s", self.dir / "t", "--format", "int4-g32", "--keep", "name:model.layers.*.nothing", says=["model.layers.*.nothing"])

    def test_C27_mtp_and_unknown_tensors_are_never_dropped(self):
        tensors, config = qwen3_moe()
        tensors["mtp.0.eh_proj.weight"] = ("BF16", [64, 128], pack_bf16(normal(8192, random.Random(1))))
        tensors["mtp.0.norm.weight"] = ("BF16", [64], pack_bf16([1.0] * 64))
        write_folder(self.dir / "s", tensors, config)
        outcome = self.done("quantize", self.dir / "s", self.dir / "t", "--format", "int4-g32")
        out = read_folder(self.dir / "t")
        for name in ("mtp.0.eh_proj.weight", "mtp.0.norm.weight"):
            self.assertEqual(out[name], tuple(tensors[name]) if isinstance(out[name], tuple) else tensors[name])
        self.assertIn("2 tensors unknown to the family, copied", outcome.text)
        self.assertIn("mtp.0.eh_proj.weight", outcome.text)
        self.assertIn("mtp.0.norm.weight", outcome.text)
        self.done("quantize", self.dir / "s", self.dir / "asked", "--format", "int4-g32", "--include", "routed_expert", "name:mtp.*.eh_proj")
        asked = read_folder(self.dir / "asked")
        self.assertEqual(asked["mtp.0.eh_proj.weight_packed"][1], [64, 16])
        self.assertEqual(asked["mtp.0.norm.weight"], out["mtp.0.norm.weight"])

    def test_C65_cache_scales_in_every_spelling(self):
        spellings = (("self_attn.k_scale", "self_attn.v_scale"), ("self_attn.k_proj.k_scale", "self_attn.v_proj.v_scale"),
                     ("self_attn.kv_scale",), ("self_attn.k_proj.output_scale", "self_attn.v_proj.output_scale"))
        for spelling in spellings:
            for dtype, data, shape in (("F32", pack_f32([0.02]), [1]), ("BF16", pack_bf16([0.02]), []), ("F32", pack_f32([0.02]), [])):
                tensors, config = qwen3_moe()
                names = ["model.layers.%d.%s" % (layer, part) for layer in range(2) for part in spelling]
                for name in names:
                    tensors[name] = (dtype, shape, data)
                folder = write_folder(self.dir / "s", tensors, config)
                for command in (("verify", folder), ("verify", folder, "--tp", 2), ("inspect", folder)):
                    outcome = self.done(*command)
                    self.assertNotIn("unmatched", outcome.text)
                    self.assertNotIn("unknown", outcome.text)
                for format_name in ("int4-g32", "nvfp4", "fp8-block"):
                    outcome = self.done("quantize", folder, self.dir / "t", "--format", format_name, "--include", "all_linears")
                    self.assertNotIn("unknown to the family", outcome.text)
                    out = read_folder(self.dir / "t")
                    for name in names:
                        self.assertEqual(out[name], (dtype, shape, data), name)
                    self.done("verify", self.dir / "t", "--against", folder)
                    shutil.rmtree(self.dir / "t")
        # One that cannot be divided by is found, whatever it is called.
        for spelling in spellings:
            for value in (0.0, -0.02, float("nan"), float("inf")):
                tensors, config = qwen3_moe()
                name = "model.layers.1." + spelling[-1]
                tensors[name] = ("F32", [1], pack_f32([value]))
                self.refused("verify", write_folder(self.dir / "bad", tensors, config), says=[name])

    def test_C91_only_the_experts_become_mxfp4(self):
        tensors, config = gpt_oss()
        out = self.quantize(tensors, config, "--format", "mxfp4")
        for layer in range(2):
            p = "model.layers.%d." % layer
            for projection in ("gate_up_proj", "down_proj"):
                self.assertEqual(out[p + "mlp.experts.%s_blocks" % projection][0], "U8")
                self.assertEqual(out[p + "mlp.experts.%s_scales" % projection][0], "U8")
                self.assertEqual(out[p + "mlp.experts.%s_bias" % projection][0], "BF16")
            self.assertEqual(out[p + "mlp.router.weight"], tensors[p + "mlp.router.weight"])
            self.assertEqual(out[p + "self_attn.q_proj.weight"], tensors[p + "self_attn.q_proj.weight"])
        config_out = json.loads((self.dir / "target/config.json").read_text())
        quantization = config_out["quantization_config"]
        self.assertEqual(quantization["quant_method"], "mxfp4")
        self.assertEqual(quantization["modules_to_not_convert"], ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"])

    def test_every_module_that_stays_is_on_the_ignore_list(self):
        tensors, config = qwen3_moe()
        self.quantize(tensors, config, "--format", "int4-g32")
        ignore = json.loads((self.dir / "target/config.json").read_text())["quantization_config"]["ignore"]
        # As compressed-tensors matches: whole names, or expressions from the start of a name.
        covered = lambda module: any(re.match(e[3:], module) if e.startswith("re:") else e == module for e in ignore)
        for name in tensors:
            self.assertEqual(covered(name.removesuffix(".weight")), ".experts." not in name, name)
        self.assertEqual(sorted(e for e in ignore if e.startswith("re:")),
                         [r"re:(.*\.)?%s$" % kind for kind in ("input_layernorm", "k_norm", "norm", "post_attention_layernorm", "q_norm")])
        findings = self.done("verify", self.dir / "target", "--against", self.dir / "source")
        self.assertEqual(self.findings(findings, "error") + self.findings(findings, "warning"), [])

    def test_fused_experts_are_compared_with_split_ones(self):
        """gpt-oss's stacks against one matrix and one bias for each expert: values, and what verify makes of them."""
        tensors, config = gpt_oss()
        source = write_folder(self.dir / "s", tensors, config)
        biases = unpack_bf16(tensors["model.layers.1.mlp.experts.gate_up_proj_bias"][2])
        stack = unpack_bf16(tensors["model.layers.1.mlp.experts.gate_up_proj"][2])
        for format_name, layout in (("int4-g32", "compressed-tensors"), ("nvfp4", "compressed-tensors"), ("fp8-block", "deepseek")):
            self.done("quantize", source, self.dir / "t", "--format", format_name, "--layout", layout)
            outcome = self.done("verify", self.dir / "t", "--against", source)
            self.assertEqual(self.findings(outcome, "error") + self.findings(outcome, "warning"), [])
            out = read_folder(self.dir / "t")
            for e in range(4):
                for half, projection in enumerate(("gate", "up")):
                    name = "model.layers.1.mlp.experts.%d.%s_proj.bias" % (e, projection)
                    self.assertEqual(unpack_bf16(out[name][2]), biases[e * 64 + half : (e + 1) * 64 : 2], name)
            if format_name == "fp8-block":
                name = "model.layers.1.mlp.experts.2.up_proj.weight"
                scale = unpack_f32(out[name + "_scale_inv"][2])[0]
                for row in range(32):
                    for k in range(0, 64, 5):  # stored (E, in, out), rows interleaved
                        want = stack[2 * 64 * 64 + k * 64 + 2 * row + 1]
                        self.assertLessEqual(abs(e4m3_value(out[name][2][row * 64 + k]) * scale - want), abs(want) / 16 + scale * 2.0**-10)
            # A bias that went to the other half is found.
            gate, up = ("model.layers.0.mlp.experts.3.%s_proj.bias" % p for p in ("gate", "up"))
            out[gate], out[up] = out[up], out[gate]
            (self.dir / "t/nibble.json").unlink()
            (self.dir / "t/model.safetensors").write_bytes(safetensors_bytes(out, {"format": "pt"}))
            self.refused("verify", self.dir / "t", "--against", source, says=[gate, up])
            shutil.rmtree(self.dir / "t")

    def test_modelopts_gpt_oss_keeps_the_axes_of_its_modules(self):
        """(E, K/2, N) bytes of two columns, (E, K/16, N) scales, one second-level scale from the largest weight of all."""
        tensors, config = gpt_oss()
        source = write_folder(self.dir / "s", tensors, config)
        self.done("quantize", source, self.dir / "t", "--format", "nvfp4", "--layout", "modelopt")
        outcome = self.done("verify", self.dir / "t", "--against", source)
        self.assertEqual(self.findings(outcome, "error") + self.findings(outcome, "warning"), [])
        out = read_folder(self.dir / "t")
        name = "model.layers.1.mlp.experts.gate_up_proj"
        self.assertEqual(out[name][:2], ("U8", [4, 32, 64]))
        self.assertEqual(out[name + "_weight_scale"][:2], ("F8_E4M3", [4, 4, 64]))
        self.assertEqual(out[name + "_bias"], tensors[name + "_bias"])
        stack = unpack_bf16(tensors[name][2])  # (E, K, N)
        second = unpack_f32(out[name + "_weight_scale_2"][2])
        self.assertEqual(out[name + "_weight_scale_2"][1], [])
        self.assertAlmostEqual(second[0], max(abs(x) for x in stack) / 2688, delta=second[0] * 1e-6)
        for e, k, n in itertools.product(range(4), range(64), range(0, 64, 7)):
            byte = out[name][2][(e * 32 + k // 2) * 64 + n]
            code = byte >> 4 if k % 2 else byte & 15
            scale = e4m3_value(out[name + "_weight_scale"][2][(e * 4 + k // 16) * 64 + n]) * second[0]
            value = E2M1[code] * scale
            self.assertLessEqual(abs(value - stack[(e * 64 + k) * 64 + n]), scale * 1.07, (e, k, n))

    def test_gate_and_up_rows_interleave_and_come_back(self):
        """Per-expert -> fused interleaved -> per-expert gives the first bytes again."""
        tensors, config = qwen3_moe()
        direct = self.quantize(tensors, config, "--format", "mxfp4", "--layout", "compressed-tensors", target="direct")
        self.done("quantize", self.dir / "source", self.dir / "fused", "--format", "mxfp4", "--layout", "gpt-oss")
        fused = read_folder(self.dir / "fused")
        blocks = fused["model.layers.1.mlp.experts.gate_up_proj_blocks"]
        self.assertEqual(blocks[1], [4, 64, 2, 16])
        gate = direct["model.layers.1.mlp.experts.2.gate_proj.weight_packed"][2]
        up = direct["model.layers.1.mlp.experts.2.up_proj.weight_packed"][2]
        for r in range(32):
            at = (2 * 64 + 2 * r) * 32
            self.assertEqual(blocks[2][at : at + 32], gate[r * 32 : r * 32 + 32])
            self.assertEqual(blocks[2][at + 32 : at + 64], up[r * 32 : r * 32 + 32])
        self.done("quantize", self.dir / "fused", self.dir / "back", "--format", "mxfp4", "--layout", "compressed-tensors")
        back = read_folder(self.dir / "back")
        self.assertEqual(set(back), set(direct))
        for name in direct:
            self.assertEqual(back[name], direct[name], name)

    def test_weights_that_no_target_can_hold_are_refused_and_never_copied(self):
        q6_k = b"GGUF" + struct.pack("<Iqq", 3, 1, 0) + struct.pack("<Q8sIQQIQ", 8, b"a.weight", 2, 256, 1, 14, 0)
        (self.dir / "a.gguf").write_bytes(q6_k + bytes(-len(q6_k) % 32) + bytes(range(210)) + bytes(14))
        scaled = {"a.weight": ("U8", [32, 32], bytes(1024)), "a.weight_scale": ("F8_E4M3", [32, 4], b"\x38" * 128),
                  "a.weight_scale_2": ("F32", [], pack_f32([1.0])), "a.pre_quant_scale": ("BF16", [64], pack_bf16([0.5] * 64))}
        folder = write_folder(self.dir / "s", scaled, {"model_type": "x"})
        for source, words in ((self.dir / "a.gguf", ["q6_k"]), (folder, ["pre_quant_scale", "model.safetensors"])):
            for options in (["bf16"], ["int4-g32", "--generic", ".*"]):
                self.refused("quantize", source, self.dir / "t", "--format", *options, says=["a.weight", *words])
                self.assertFalse((self.dir / "t").exists())

    def test_columns_grouped_out_of_order_are_rounded_again_and_said_so(self):
        source = pathlib.Path(__file__).resolve().parents[1] / "golden" / "models" / "linear_gptq_act_order"
        made = self.done("quantize", source, self.dir / "t", "--format", "int4-g128-asym", "--generic", ".*")
        self.assertEqual({t["action"] for t in made.json["tensors"] if t["action"] != "kept"}, {"quantized"})
        outcome = self.done("verify", self.dir / "t", "--against", source, "--rederive")
        self.assertEqual(self.findings(outcome, "error"), [])
        self.assertLess(max(row["rel_rmse"] for row in outcome.json["against"]), 0.1)

    def test_scales_that_were_moved_are_not_declared_powers_of_two(self):
        tensors, config = qwen3_moe(hidden=128, width=128)
        source = write_folder(self.dir / "bf16", tensors, config)
        options = ("--format", "fp8-block", "--layout", "deepseek")
        self.done("quantize", source, self.dir / "a", *options)
        self.done("quantize", self.dir / "a", self.dir / "b", *options, "--rule", "fp8.ue8m0")
        self.done("quantize", source, self.dir / "c", *options, "--rule", "fp8.ue8m0")
        declared = [json.loads((self.dir / name / "config.json").read_text())["quantization_config"].get("scale_fmt")
                    for name in "abc"]
        self.assertEqual(declared, [None, None, "ue8m0"])
        for name in "bc":
            self.assertEqual(self.findings(self.done("verify", self.dir / name), "error"), [])


if __name__ == "__main__":
    unittest.main()
