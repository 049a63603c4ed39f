#!/usr/bin/env python3
"""nibble train CONFIG.json from outside: a model from nothing, then in low bits; what is exported, refusals."""
import json
import unittest

from checkpoints import *  # noqa: F403

LIBRARY = pathlib.Path(NIBBLE).parent / "libnibble_train.so"
MODEL = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "vocab_size": 8, "hidden_size": 32,
         "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
         "head_dim": 16, "hidden_act": "silu", "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
         "rope_theta": 10000, "tie_word_embeddings": False, "num_experts": 2, "num_experts_per_tok": 1,
         "moe_intermediate_size": 32, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True}
BASE = {"model": MODEL, "data": {"task": "running-sum:symbols=4", "sequence": 16}, "steps": 6, "batch": 4,
        "evaluate": {"chains": 4, "length": 8, "windows": 4}}


@unittest.skipUnless(LIBRARY.exists(), "built without training")
class TrainConfig(CaseTest):
    def config(self, name, change):
        path = self.dir / f"{name}.json"
        path.write_text(json.dumps({**BASE, **change}))
        return path

    def test_from_nothing_and_then_in_low_bits(self):
        first = self.done("train", self.config("first", {}), "--out", self.dir / "first").json
        self.assertTrue(first["finished"])
        self.assertNotIn("packed", first)
        change = {"source": "first/dense", "quantization": {"format": "int4-g32"}}
        path = self.config("second", change)
        second = json.loads(path.read_text())
        del second["model"]
        path.write_text(json.dumps(second))
        part = self.done("train", path, "--out", self.dir / "second", "--stop-after", 2, "--allow-worse").json
        self.assertFalse(part["finished"])
        self.refused("train", path, "--out", self.dir / "second", says=["--resume"])
        whole = self.done("train", path, "--out", self.dir / "second", "--resume", "--allow-worse").json
        self.assertEqual(whole["steps"], 6)
        self.assertLessEqual(0, whole["baseline"]["checkable"]["single_step"])
        self.done("verify", whole["packed"], "--against", whole["dense"], "--rederive")
        events = [json.loads(line)["event"] for line in (self.dir / "second" / "log.jsonl").read_text().splitlines()]
        self.assertEqual(events[:2] + events[-2:], ["start", "baseline", "evaluate", "end"])
        self.assertEqual(events.count("step"), 6)
        self.assertIn("<svg", (self.dir / "second" / "loss.svg").read_text())

    def test_reinforcement_draws_from_what_is_served(self):
        self.done("train", self.config("first", {}), "--out", self.dir / "first")
        change = {key: value for key, value in BASE.items() if key != "model"}
        change |= {"source": "first/dense", "quantization": {"format": "mxfp4"}, "objective": "reinforce", "steps": 2,
                   "reinforce": {"groups": 2, "group": 3, "length": 6}}
        path = self.dir / "reinforce.json"
        path.write_text(json.dumps(change))
        self.done("train", path, "--out", self.dir / "second", "--allow-worse")
        events = [json.loads(line) for line in (self.dir / "second" / "log.jsonl").read_text().splitlines()]
        steps = [event for event in events if event["event"] == "step"]
        self.assertEqual(len(steps), 2)
        for step in steps:
            self.assertEqual(round(step["reward"] * 36, 6) % 1, 0)  # of 36 choices
            self.assertLess(step["log_prob_largest_gap"], 1e-4)
        self.assertFalse((self.dir / "second" / "drawn").exists())

    def test_refusals(self):
        out = ("--out", self.dir / "out")
        self.refused("train", self.config("a", {"learning_rat": 1}), *out, says=["learning_rat", "learning_rate"])
        group = {"quantization": {"format": "int4-g32"}, "export": {"format": "int4-g64"}}
        self.refused("train", self.config("b", group), *out, says=["32", "64"])
        width = {"quantization": {"format": "int4-g64"}}
        self.refused("train", self.config("c", width), *out, says=["width", "32", "64"])
        self.refused("train", "--recipe", "chain-mo", *out, says=["chain-moe"])
        self.assertFalse((self.dir / "out").exists())
        self.assertEqual(self.nibble("train", self.config("d", {}), "--recipe", "chain-moe").code, 2)

    def test_recipes(self):
        self.assertIn("chain-moe", self.done("train", "--recipes").json["recipes"])


if __name__ == "__main__":
    unittest.main()
