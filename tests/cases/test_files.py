"""Cases of section 1.4: incomplete, inconsistent or wrong files."""

import unittest

from checkpoints import *  # noqa: F403


class Files(CaseTest):
    def quantized_tiny(self, format_name="int4-g32", **options):
        tensors, config = qwen3_moe(**options)
        write_folder(self.dir / "bf16", tensors, config)
        self.done("quantize", self.dir / "bf16", self.dir / "tiny", "--format", format_name)
        return self.dir / "tiny"

    def test_a_good_checkpoint_passes(self):
        for format_name in ("int4-g32", "int4-g32-asym", "mxfp4", "nvfp4", "mxfp8", "fp8-block", "fp8-channel", "fp8-tensor"):
            tensors, config = qwen3_moe()
            source = write_folder(self.dir / "bf16", tensors, config)
            self.done("quantize", source, self.dir / format_name, "--format", format_name)
            outcome = self.done("verify", self.dir / format_name, "--against", source)
            self.assertEqual(self.findings(outcome, "error") + self.findings(outcome, "warning"), [], format_name)

    def nvfp4_with_kept_experts(self, kept, listed):
        """256 experts in NVFP4, except those of `kept` in layer 0, which are BF16; the list names those of `listed`."""
        tensors, config = qwen3_moe(layers=2, experts=256, hidden=32, width=16, vocabulary=32)
        rng = random.Random(2)
        for name, (_, (rows, cols), _) in [(n, t) for n, t in tensors.items() if ".experts." in n]:
            if "layers.0." in name and int(name.split(".experts.")[1].split(".")[0]) in kept:
                continue
            module = name[: -len(".weight")]
            tensors[name] = ("U8", [rows, cols // 2], rng.randbytes(rows * cols // 2))
            tensors[module + ".weight_scale"] = ("F8_E4M3", [rows, cols // 16], b"\x38" * (rows * cols // 16))
            tensors[module + ".weight_scale_2"] = ("F32", [], pack_f32([0.01]))
        config["quantization_config"] = {"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4", "ignore": [
            "lm_head", *("model.layers.0.mlp.experts.%d.*" % e for e in listed)]}
        return write_folder(self.dir / ("kept%d_listed%d" % (len(kept), len(listed))), tensors, config)

    def test_C25_a_list_of_all_children_leaves_the_whole_group_unquantized(self):
        folder = self.nvfp4_with_kept_experts(range(256), range(256))
        outcome = self.done("verify", folder)
        self.assertEqual(self.findings(outcome, "error") + self.findings(outcome, "warning"), [])
        rows = [f for f in self.done("inspect", folder).json["formats"] if f["role"] == "routed_expert"]
        self.assertEqual({f["format"]: f["tensors"] for f in rows}, {"bf16": 768, "nvfp4": 768})
        self.done("quantize", folder, self.dir / "t", "--format", "nvfp4")

    def test_C25_part_of_a_fused_group_is_refused(self):
        for kept, listed in ((range(100), range(100)), (range(100), ()), ([7], [7])):
            folder = self.nvfp4_with_kept_experts(kept, listed)
            outcome = self.refused("verify", folder, says=["layer 0", len(kept), 256 - len(kept), "bf16", "nvfp4"])
            self.assertEqual(len(self.findings(outcome, "error", "mixed-formats")), 1)

    def test_C51_stale_index_and_reindex(self):
        tensors, config = qwen3_moe()
        names = list(tensors)
        shards = {"model-%05d-of-00015.safetensors" % (i + 1): {n: tensors[n] for n in names[i::15]} for i in range(15)}
        folder = write_shards(self.dir / "s", shards, config, index=False)
        stale = {name: "model-%05d-of-00030.safetensors" % (i % 30 + 1) for i, name in enumerate(names)}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": stale}))
        self.refused("verify", folder, says=[30, 15, "--reindex"])
        self.refused("quantize", folder, self.dir / "t", "--format", "mxfp4", says=[30, 15])
        self.done("verify", folder, "--reindex")
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        self.assertEqual(set(index["weight_map"]), set(names))

    def test_C53_unexpected_names_are_counted_and_the_nearest_is_named(self):
        tensors, config = qwen3_moe()
        renamed = {name.replace("mlp.experts.", "mlp.switch_mlp."): entry for name, entry in tensors.items()}
        folder = write_folder(self.dir / "s", renamed, config)
        for arguments in (("verify", folder), ("quantize", folder, self.dir / "t", "--format", "mxfp4")):
            self.refused(*arguments, says=["24 unmatched tensors, 24 empty parameters", "mlp.switch_mlp.", "mlp.experts."])

    def test_C55_missing_and_unfilled_router(self):
        tensors, config = qwen3_moe()
        name = "model.layers.1.mlp.gate.weight"
        missing = {n: t for n, t in tensors.items() if n != name}
        folder = write_folder(self.dir / "a", missing, config)
        self.refused("verify", folder, says=[name])
        self.refused("quantize", folder, self.dir / "t", "--format", "mxfp4", says=[name])
        tensors[name] = ("BF16", [4, 64], bytes(512))
        outcome = self.refused("verify", write_folder(self.dir / "b", tensors, config), says=[name, 4, 64])
        self.assertTrue(self.findings(outcome, "error"))

    def test_C57_the_stored_tensors_decide(self):
        tiny = self.quantized_tiny()
        folder = self.dir / "tiny-modelopt-NVFP4"
        shutil.copytree(tiny, folder)
        outcome = self.done("inspect", folder)
        self.assertIn("int4-g32", [f["format"] for f in outcome.json["formats"]])
        (folder / "hf_quant_config.json").write_text(json.dumps({"producer": {"name": "modelopt", "version": "0"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": None, "group_size": 16, "exclude_modules": ["lm_head"]}}))
        outcome = self.nibble("verify", folder, "--json")
        self.assertIn("hf_quant_config.json", outcome.text)
        self.assertIn("config.json", outcome.text)
        self.assertTrue(self.findings(outcome, "warning") + self.findings(outcome, "error"))
        outcome = self.done("inspect", folder)
        self.assertIn("int4-g32", [f["format"] for f in outcome.json["formats"]])

    def test_C57_a_declared_width_that_is_not_stored(self):
        rng = random.Random(12)
        tensors = {"m.qweight": ("I32", [32, 16], rng.randbytes(2048)), "m.qzeros": ("I32", [2, 2], b"\x77" * 16),
                   "m.scales": ("F16", [2, 16], struct.pack("<32e", *[0.01] * 32))}
        for bits in (4, 3, 8):
            config = {"model_type": "x", "quantization_config": {"quant_method": "gptq", "bits": bits, "group_size": 128, "desc_act": False, "sym": True}}
            folder = write_folder(self.dir / "s", tensors, config)
            outcome = self.done("verify", folder)
            found = self.findings(outcome, "warning", "config-contradiction")
            self.assertEqual(len(found), 0 if bits == 4 else 1, outcome.text)
            if found:
                self.assertEqual(found[0]["values"]["config.json"], "%d bits" % bits)
                self.assertIn("4 bits", found[0]["values"]["stored"])

    def test_C77_unknown_and_small_types(self):
        good = {"a": ("F4", [4, 64], bytes(128)), "b": ("F8_E8M0", [4, 2], bytes([127] * 8)), "c.weight": ("I8", [4, 32], bytes(range(128))), "c.weight_scale": ("U8", [4, 2], bytes([127] * 8))}
        (self.dir / "g.safetensors").write_bytes(safetensors_bytes(good))
        outcome = self.done("inspect", self.dir / "g.safetensors")
        self.assertEqual(outcome.json["tensors"], 4)
        self.assertEqual({f["format"]: f["elements"] for f in outcome.json["formats"]}, {"f4": 256, "f8_e8m0": 8, "mxfp4": 256})
        for header, says in (('{"w":{"dtype":"F4","shape":[1,3],"data_offsets":[0,2]}}', ["w", 3]),
                             ('{"w":{"dtype":"F4","shape":[4,63],"data_offsets":[0,126]}}', ["w", 63]),
                             ('{"w":{"dtype":"F6_X","shape":[4],"data_offsets":[0,3]}}', ["w", "F6_X"])):
            (self.dir / "b.safetensors").write_bytes(raw_safetensors(header, bytes(126 if "126" in header else 2 if "F4" in header else 3)))
            outcome = self.refused("inspect", self.dir / "b.safetensors", says=says)
            self.assertNotIn("corrupt", outcome.text)

    def test_C81_act_order_and_missing_g_idx(self):
        rng = random.Random(4)
        k, n = 256, 16
        codes = [[rng.randrange(16) for _ in range(n)] for _ in range(k)]
        qweight = b"".join(struct.pack("<I", sum(codes[8 * r + j][o] << (4 * j) for j in range(8))) for r in range(k // 8) for o in range(n))
        scales = [[0.01 * (1 + g + o) for o in range(n)] for g in range(2)]
        base = {"m.qweight": ("I32", [k // 8, n], qweight), "m.qzeros": ("I32", [2, n // 8], b"\x77" * (2 * n // 2)), "m.scales": ("F16", [2, n], b"".join(struct.pack("<e", s) for row in scales for s in row))}
        half = [[struct.unpack("<e", struct.pack("<e", s))[0] for s in row] for row in scales]
        for act_order in (True, False):
            tensors = dict(base)
            if act_order:
                tensors["m.g_idx"] = ("I32", [k], struct.pack("<%di" % k, *(i % 2 for i in range(k))))
            config = {"model_type": "x", "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": act_order, "sym": True}}
            folder = write_folder(self.dir / ("a%d" % act_order), tensors, config)
            self.done("quantize", folder, self.dir / ("t%d" % act_order), "--format", "bf16")
            values = unpack_bf16(read_folder(self.dir / ("t%d" % act_order))["m.weight"][2])
            for o in range(n):
                for i in range(k):
                    group = i % 2 if act_order else i // 128
                    self.assertEqual(values[o * k + i], bf16_value(bf16_bits(f32(half[group][o] * (codes[i][o] - 8)))))

    def test_C137_careless_rounding_in_one_layer(self):
        tensors, config = qwen3_moe(layers=40)
        base = write_folder(self.dir / "base", tensors, config)
        self.done("quantize", base, self.dir / "int4", "--format", "int4-g32")
        broken = read_folder(self.dir / "int4")
        for name, (dtype, shape, data) in broken.items():
            if name.startswith("model.layers.17.mlp.experts.") and name.endswith("weight_scale"):
                broken[name] = (dtype, shape, pack_bf16([3 * v for v in unpack_bf16(data)]))
        (self.dir / "int4/model.safetensors").write_bytes(safetensors_bytes(broken, {"format": "pt"}))
        (self.dir / "int4/nibble.json").unlink()
        outcome = self.refused("verify", self.dir / "int4", "--against", base)
        errors = self.findings(outcome, "error")
        self.assertTrue(errors)
        import re
        layers = set(re.findall(r"layers?[ .](\d+)", json.dumps(errors)))
        self.assertEqual(layers, {"17"})
        one = next(f for f in errors if f["tensor"])
        self.assertAlmostEqual(float(one["values"]["rel_rmse"]), 2.0, delta=0.1)
        self.assertAlmostEqual(float(one["values"]["expected_rel_rmse"]), 0.1, delta=0.03)

    def test_manifest_hashes_are_checked(self):
        tiny = self.quantized_tiny()
        path = tiny / "model.safetensors"
        data = bytearray(path.read_bytes())
        data[-5] ^= 1
        path.write_bytes(bytes(data))
        self.refused("verify", tiny, says=["model.safetensors", "sha256"])


if __name__ == "__main__":
    unittest.main()
