"""`nibble plan`: promised keys, exit codes, real checkpoints, bad input."""

import time
import unittest

from checkpoints import *  # noqa: F403

FLAT = ("plan", "--total", "1e12", "--active", "32e9", "--gpu", "h200", "--gpus", "8")


class Plan(CaseTest):
    def test_a_trillion_parameters(self):
        outcome = self.done(*FLAT)
        rows = {row["format"]: row for row in outcome.json["formats"]}
        expected = {"bf16": ("2.00", 21, 3, "1.67"), "fp8-block": ("1.00", 11, 2, "0.83"),
                    "int4-g32": ("0.56", 6, 1, "0.47"), "mxfp4": ("0.53", 6, 1, "0.44"),
                    "nvfp4": ("0.56", 6, 1, "0.47")}
        self.assertEqual(list(rows), list(expected))
        for name, (terabytes, gpus, machines, floor) in expected.items():
            row = rows[name]
            self.assertEqual(("%.2f" % (row["weight_bytes"] / 1e12), row["min_gpus"], row["machines"],
                              "%.2f" % row["floor_ms_per_token"]), (terabytes, gpus, machines, floor), name)
        self.assertEqual((rows["int4-g32"]["scales_percent"], rows["mxfp4"]["scales_percent"]), (12.5, 6.25))
        self.assertTrue(outcome.json["fits"])

    def test_exit_codes_follow_the_format_asked_for(self):
        self.done(*FLAT, "--format", "mxfp4")
        outcome = self.refused(*FLAT, "--format", "bf16")
        self.assertFalse(outcome.json["fits"])
        self.assertEqual(len(outcome.json["changes"]), 3)

    def test_promised_keys(self):
        plan = self.done("plan", "qwen3-30b-a3b", "--gpus", "1", "--draft", "2").json
        self.assertLessEqual({"formats", "fits", "per_gpu", "kv", "params", "layout", "refused"}, set(plan))
        self.assertLessEqual({"weights", "kv", "activations", "workspace", "communication", "reserve"}, set(plan["per_gpu"]))
        self.assertEqual(plan["params"], {"total": 30532122624, "active": 3041867776, "routed": 28991029248, "mtp": 0})
        self.assertEqual((plan["kv"]["bytes_per_token"], plan["kv"]["bytes_per_sequence"]), (98304, 0))
        self.assertEqual(self.done("plan", "qwen3-30b-a3b", "--kv", "fp8").json["kv"]["bytes_per_token"], 49152)

    def test_a_checkpoint_is_its_headers_sum(self):
        tensors, config = qwen3_moe()
        source = write_folder(self.dir / "bf16", tensors, config)
        stored = sum(len(data) for _, _, data in tensors.values())
        plan = self.done("plan", source, "--format", "released").json
        self.assertEqual(plan["formats"][0]["weight_bytes"], stored)
        for name in ("int4-g32", "mxfp4", "nvfp4", "fp8-block"):
            self.done("quantize", source, self.dir / name, "--format", name)
            tensors_of = read_folder(self.dir / name)
            stored = sum(len(data) for _, _, data in tensors_of.values())
            plan = self.done("plan", self.dir / name, "--format", "released").json
            self.assertEqual(plan["formats"][0]["weight_bytes"], stored, name)
            # What was planned for the source is what quantize wrote, but for tensors that name shapes or second levels
            # of a layout's own.
            planned = self.done("plan", source, "--format", name).json["formats"][0]["weight_bytes"]
            shapes = sum(len(data) for tensor, (_, _, data) in tensors_of.items() if tensor.endswith("weight_shape"))
            self.assertEqual(planned + shapes, stored, name)

    def test_what_quantize_copies_is_planned(self):
        tensors, config = glm4_moe()
        source = write_folder(self.dir / "glm", tensors, config)
        for name in ("int4-g32", "mxfp4", "bf16"):
            self.done("quantize", source, self.dir / name, "--format", name)
            written = read_folder(self.dir / name)
            self.assertIn("model.layers.2.shared_head.head.weight", written)
            stored = sum(len(data) for tensor, (_, _, data) in written.items() if not tensor.endswith("weight_shape"))
            planned = self.done("plan", source, "--format", name).json["formats"][0]["weight_bytes"]
            self.assertEqual(planned, stored, name)
        # Drafts read the model's own head: what they take is the same without the copies.
        drafting = ("--format", "mxfp4", "--gpus", "1", "--draft", "1")
        plans = [self.done("plan", source, *drafting).json]
        for copy in ("shared_head.head", "embed_tokens"):
            del tensors["model.layers.2.%s.weight" % copy]
        plans.append(self.done("plan", write_folder(self.dir / "plain", tensors, config), *drafting).json)
        self.assertEqual(plans[0]["speculation"], plans[1]["speculation"])
        self.assertEqual(plans[0]["per_gpu"]["weights"], plans[1]["per_gpu"]["weights"])

    def test_C43_a_cut_group_is_refused_before_a_byte_is_read(self):
        config = json.loads(json.dumps(qwen3_moe(experts=4, hidden=256, width=640)[1]))
        (self.dir / "config.json").write_text(json.dumps(config))
        for option, code in ((("--tp", "2", "--ep", "1"), 1), (("--ep", "2", "--tp", "2"), 0)):
            outcome = self.nibble("plan", self.dir / "config.json", "--format", "int4-g128", "--gpus", "2", *option, "--json")
            self.assertEqual(outcome.code, code, outcome.text)
            if code:
                reasons = [r for r in outcome.json["refused"] if r["layout"]["ep"] == 1]
                self.assertEqual(reasons[0]["values"], {"width": "640", "parts": "2", "local": "320", "block": "128",
                                                        "remainder": "64"})
                self.assertIn("1, 5", " ".join(reasons[0]["ways_out"]))

    def test_unknown_names_give_the_nearest(self):
        self.refused("plan", "kimi-k2.4", says=["kimi-k2.5"])
        self.refused("plan", "gpt-oss-120b", "--gpu", "h2000", says=["h200"])
        self.refused("plan", "gpt-oss-120b", "--format", "int4g32", says=["int4-gN"])

    def test_wrong_usage(self):
        for arguments in (("plan",), ("plan", "kimi-k2.5", "--total", "1e12", "--active", "1e9"),
                          ("plan", "--total", "1e12"), ("plan", "--total", "1e9", "--active", "1e12"),
                          ("plan", "kimi-k2.5", "--reserve", "1.5"), ("plan", "kimi-k2.5", "--gpus", "0"),
                          ("plan", "kimi-k2.5", "--gpus", "8", "--tp", "3"), ("plan", "kimi-k2.5", "--kv", "int3"),
                          ("plan", "--total", "nan", "--active", "1"), ("plan", "kimi-k2.5", "--reserve", "nan"),
                          ("plan", "kimi-k2.5", "--skew", "inf"), ("plan", "--total", "-5", "--active", "1"),
                          ("plan", "kimi-k2.5", "--html", "")):
            outcome = self.nibble(*arguments, "--json")
            self.assertEqual(outcome.code, 2, arguments)
            self.assertIn("error", outcome.json, arguments)

    def test_bad_configurations(self):
        good = qwen3_moe()[1]
        for change in ({"num_experts": 0}, {"hidden_size": -1}, {"num_hidden_layers": 10**12}, {"hidden_size": 1 << 62},
                       {"num_experts_per_tok": 99}, {"head_dim": "wide"}, {"model_type": "unheard_of"}):
            path = self.dir / "config.json"
            path.write_text(json.dumps({**good, **change, "architectures": []}))
            start = time.monotonic()
            self.refused("plan", path, says=[str(path)])
            self.assertLess(time.monotonic() - start, 5)
        for text in ("", "{", "[]", "null", '{"model_type": ', "\xff"):
            path.write_bytes(text.encode("latin-1"))
            self.refused("plan", path, says=[str(path)])

    def test_keys_that_no_formula_gives_are_not_guessed(self):
        models = ROOT / "data" / "models"
        for model, keys in (("gpt-oss-120b", ("head_dim", "num_key_value_heads")),
                            ("qwen3-30b-a3b", ("num_key_value_heads",)),
                            ("deepseek-v3", ("n_shared_experts", "first_k_dense_replace", "q_lora_rank"))):
            config = json.loads((models / f"{model}.json").read_text())
            for key in keys:
                path = self.dir / "config.json"
                path.write_text(json.dumps({name: value for name, value in config.items() if name != key}))
                self.refused("plan", path, says=[f"`{key}`", str(path)])

    def test_long_lists_of_refusals_end_with_a_number(self):
        plan = self.done("plan", "kimi-k2.5", "--gpus", "1440").json
        self.assertEqual(len(plan["refused"]), 200)
        self.assertGreater(plan["refused_more"], 0)
        self.assertEqual(self.done("plan", "kimi-k2.5", "--gpus", "8").json["refused_more"], 0)

    def test_the_first_possible_format_is_planned(self):
        plan = self.done("plan", "gpt-oss-120b", "--format", "int4-g128", "mxfp4", "--gpus", "1", "--emit", "vllm").json
        self.assertEqual(plan["detail"], "mxfp4")
        self.assertGreater(plan["per_gpu"]["weights"], 60e9)
        plan = self.done("plan", "kimi-k2.5", "--format", "bf16", "int4-g32", "--gpus", "8", "--emit", "vllm").json
        self.assertEqual((plan["detail"], plan["per_gpu"]["fits"]), ("int4-g32", True))
        self.refused("plan", "gpt-oss-120b", "--format", "q4_k", "--emit", "vllm", says=["int4-gN"])

    def test_launch_configurations(self):
        vllm = self.done("plan", "kimi-k2.5", "--gpus", "8", "--tp", "8", "--ep", "8", "--emit", "vllm", "--kv", "fp8").json["launch"]
        for line in ("tensor-parallel-size: 8", "enable-expert-parallel: true", "kv-cache-dtype: fp8"):
            self.assertIn(line, vllm.split("\n"))
        sglang = self.done("plan", "kimi-k2.5", "--gpus", "8", "--tp", "4", "--dp", "2", "--ep", "8", "--emit", "sglang").json["launch"]
        for line in ("tp-size: 8", "dp-size: 2", "ep-size: 8", "enable-dp-attention: true"):
            self.assertIn(line, sglang.split("\n"))


if __name__ == "__main__":
    unittest.main()
