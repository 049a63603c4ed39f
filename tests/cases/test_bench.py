#!/usr/bin/env python3
"""nibble bench from outside: keys, figures that hold whatever the machine's speed, refusals. No speed is judged."""
import contextlib
import io
import json
import sys
import types
import unittest
from unittest import mock

import checkpoints

sys.path.insert(0, str(checkpoints.ROOT / "bench" / "peers"))
import compare_engines  # noqa: E402
import random_gguf  # noqa: E402

MODELS = checkpoints.ROOT / "tests" / "golden" / "models"
PROMISED = {"op", "shape", "format", "scheme", "tokens", "us", "bytes", "flops", "gb_per_s", "tflops", "percent_of_floor",
            "ceiling", "check_error", "kernel"}


class Bench(checkpoints.CaseTest):
    def rows(self, *arguments):
        """All rows have the promised keys, and figures that follow from one another."""
        made = self.done("bench", *arguments, "--row-seconds", 0.01).json
        machine = made["machine"]
        for row in made["rows"]:
            self.assertLessEqual(PROMISED, set(row))
            seconds = row["us"] / 1e6
            self.assertGreater(seconds, 0)
            self.assertAlmostEqual(row["gb_per_s"], row["bytes"] / seconds / 1e9, delta=1e-6 * row["gb_per_s"])
            self.assertAlmostEqual(row["tflops"], row["flops"] / seconds / 1e12, delta=1e-6 * row["tflops"])
            self.assertAlmostEqual(row["percent_of_floor"], 100 * row["floor_us"] / row["us"], delta=1e-6 * row["percent_of_floor"])
            self.assertIn(row["ceiling"], ("memory", "int8", "f32"))
            # No floor is below reading everything once.
            self.assertGreater(row["floor_us"] * 1.0001, 1e6 * row["bytes"] / machine["memory_bandwidth"]["value"])
            if "context" in row:
                self.assertAlmostEqual(row["tokens_per_s"], row["tokens"] / seconds, delta=1e-6 * row["tokens_per_s"])
        return made

    def model(self, path, *arguments):
        made = self.rows("model", "--model", path, *arguments)
        by_op = {}
        for row in made["rows"]:
            by_op.setdefault(row["op"], []).append(row)
        return made, by_op


class Tune(checkpoints.CaseTest):
    def with_table(self, value):
        return mock.patch.dict("os.environ", {"NIBBLE_TUNING": str(value)})

    def test_C109_kernels_are_chosen_by_what_was_measured(self):
        table = self.dir / "cache" / "tuning.json"
        with self.with_table(table):
            made = self.done("bench", "--tune", "--format", "mxfp4", "--row-seconds", 0.01).json
        self.assertEqual(made["file"], str(table))
        written = json.loads(table.read_text())
        self.assertEqual([row["tokens"] for row in written["rows"]], [2**i for i in range(10)])
        for row in written["rows"]:
            best = min((r for r in made["rows"] if r["tokens"] == row["tokens"]), key=lambda r: r["us"])
            chosen = [r for r in made["rows"] if r["tokens"] == row["tokens"] and r["chosen"]]
            self.assertEqual([r["kernel"] for r in chosen], [row["kernel"]])
            self.assertLessEqual(chosen[0]["us"] * 0.97, best["us"])
        # What is measured decides, whatever it is.
        for row in written["rows"]:
            row["kernel"] = "reference" if row["tokens"] == 32 else row["kernel"]
        table.write_text(json.dumps(written))
        with self.with_table(table):
            for tokens, slow in ((31, False), (32, True), (63, True), (64, False)):
                found = self.done("kernels", "--format", "mxfp4", "--tokens", tokens).json["candidates"]
                chosen = next(c for c in found if c["verdict"] == "chosen")
                self.assertEqual(chosen["kernel"] == "reference", slow, tokens)
                self.assertIn("measured", chosen["reason"])

    def test_C109_answers_do_not_depend_on_the_table(self):
        table = self.dir / "tuning.json"
        model = MODELS / "qwen3_moe_int4"
        arguments = ("bench", "--perplexity", self.dir / "ids.jsonl", "--model", model, "--scheme", "w4a8")
        (self.dir / "ids.jsonl").write_text(json.dumps([3, 7, 11, 2, 9, 4, 4, 8, 1, 5, 6, 2]) + "\n")
        results = []
        with self.with_table("none"):
            results.append(self.done(*arguments).json["mean_nll"])
        with self.with_table(table):
            self.done("bench", "--tune", "--format", "int4-g32", "--row-seconds", 0.01)
            written = json.loads(table.read_text())
            for row in written["rows"]:
                row["kernel"] = "reference"
            table.write_text(json.dumps(written))
            results.append(self.done(*arguments).json["mean_nll"])
        self.assertEqual(results[0], results[1])

    def test_tables_that_are_none(self):
        table = self.dir / "tuning.json"
        for text in ("{", "[]", '{"rows": 1}'):
            table.write_text(text)
            with self.with_table(table):
                self.refused("kernels", "--format", "mxfp4", says=["tuning.json", "NIBBLE_TUNING=none"] if text != "{" else ["tuning.json"])
        with self.with_table("none"):
            self.refused("bench", "--tune", "--format", "mxfp4", says=["--out"])


class Model(Bench):
    def test_rows_of_a_checkpoint(self):
        made, rows = self.model(MODELS / "qwen3_moe_int4", "--tokens", 8, 70, "--context", 0, 200, "--decode", 4)
        self.assertEqual([row["tokens"] for row in rows["prefill"]], [8, 70])
        self.assertEqual([(row["tokens"], row["context"]) for row in rows["decode"]], [(1, 0), (1, 200)])
        self.assertEqual(len(rows["load"]), 1)
        for row in rows["prefill"] + rows["decode"]:
            self.assertEqual(row["shape"], "qwen3_moe_int4")
            self.assertEqual(row["scheme"], "w4a8")
            self.assertEqual(row["check_error"], 0)
            self.assertGreater(row["flops"], 0)
            self.assertTrue(row["kernel"])
        short, long = rows["decode"]
        # 2 layers, keys and values of 2 heads of 16, BF16: what 200 tokens more add.
        self.assertEqual(long["bytes"] - short["bytes"], 200 * 2 * 2 * 2 * 16 * 2)
        self.assertIsNone(rows["load"][0]["check_error"])

    def test_sizes_are_the_files(self):
        made, rows = self.model(MODELS / "llama", "--tokens", 4, "--decode", 2, "--no-check")
        model = made["model"]
        self.assertEqual(model["file_bytes"], rows["load"][0]["bytes"])
        tensors = checkpoints.read_folder(MODELS / "llama")
        self.assertEqual(model["file_bytes"], sum(len(data) for _, _, data in tensors.values()))
        self.assertEqual(sum(each["bytes"] for each in model["formats"]), model["file_bytes"])
        self.assertEqual(model["weight_bytes"], model["predicted_weight_bytes"])
        self.assertGreater(model["peak_rss_bytes"], model["weight_bytes"])
        self.assertTrue(all(row["check_error"] is None for row in made["rows"]))

    def test_decode_reads_what_generate_reads(self):
        _, rows = self.model(MODELS / "llama", "--tokens", 5, "--decode", 1, "--context", 4, "--scheme", "w4a16", "--no-check")
        answer = self.done("generate", MODELS / "llama", "--tokens", "1,2,3,4,5", "-n", 2, "--ignore-end").json
        # The measured token is the second behind the context: as far as the one that follows five.
        self.assertEqual(rows["decode"][0]["bytes"], answer["decode"]["bytes_per_token"])

    def test_refusals(self):
        llama = MODELS / "llama"
        self.refused("bench", "model", "--model", llama, "--tokens", 513, says=["positions", 512])
        self.refused("bench", "model", "--model", llama, "--context", 500, "--decode", 32, says=["positions", 533])
        self.refused("bench", "layer", "--shape", "gpt-oss-20", says=["gpt-oss-20b"])
        self.refused("bench", "op", "--shape", "gpt-oss-20b/experts.down", "--format", "q6_k", says=["q6_k"])
        for usage in (["bench"], ["bench", "model"], ["bench", "--perplexity", llama / "config.json", "--model", llama, "--context", 8, 16]):
            self.assertEqual(self.nibble(*usage).code, 2, usage)


class Op(Bench):
    def test_rows_and_no_check(self):
        arguments = ["op", "--shape", "qwen3-30b-a3b/attention.q", "--format", "mxfp4", "--tokens", 1]
        checked, unchecked = (self.rows(*arguments, *more)["rows"][0] for more in ([], ["--no-check"]))
        self.assertEqual(checked["check_error"], 0)
        self.assertIsNone(unchecked["check_error"])
        for row in (checked, unchecked):
            self.assertEqual(row["bytes"], 4096 * 2048 * 17 / 32)
            self.assertEqual(row["flops"], 2 * 4096 * 2048)


TINY = {"vocabulary": 256, "layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 32, "experts": 8, "used": 2,
        "width": 96, "dense": 128, "context": 512}


class RandomModels(Bench):
    """The files that engines are compared on, made small."""

    def test_both_shapes_run(self):
        for name, model in random_gguf.MODELS.items():
            tiny = model | TINY
            path = self.dir / f"{name}.gguf"
            random_gguf.make(path, name, tiny)
            self.done("verify", path)
            made, rows = self.model(path, "--tokens", 40, "--decode", 3)
            self.assertEqual(made["model"]["name"], name)
            self.assertEqual(rows["decode"][0]["check_error"], 0)
            self.assertEqual(made["model"]["file_bytes"], random_gguf.file_bytes(tiny))
            low = {"gpt-oss-20b": "mxfp4"}.get(name, "int4-g32")
            self.assertIn(low, [each["format"] for each in made["model"]["formats"]])

    def test_sizes_of_the_real_ones(self):
        gb = {name: random_gguf.file_bytes(model) / 1e9 for name, model in random_gguf.MODELS.items()}
        self.assertAlmostEqual(gb["gpt-oss-20b"], 12.1, delta=0.05)
        self.assertAlmostEqual(gb["qwen3-30b-a3b"], 4.9, delta=0.05)

    def test_qwen3_moe_in_gguf_is_the_same_model(self):
        tensors, config = checkpoints.qwen3_moe(head_dim=32)
        checkpoints.write_folder(self.dir / "folder", tensors, config)
        random_gguf.write(self.dir / "model.gguf", gguf_keys(config), gguf_tensors(tensors, config))
        answers = [self.done("generate", self.dir / path, "--tokens", "1,2,3,4,5,6,7", "-n", 24, "--ignore-end").json["tokens"]
                   for path in ("folder", "model.gguf")]
        self.assertEqual(answers[0], answers[1])


class Comparison(checkpoints.CaseTest):
    """What is made of the engines' answers: programs that print what theirs print."""

    OPTIONS = types.SimpleNamespace(threads=2, prompts=[512, 2048], contexts=[0, 2048], decode=32, nibble="nibble")

    def program(self, name, rows):
        """A benchmark that prints a line and then JSON, and notes how it was called."""
        path = self.dir / name
        path.write_text(f"#!/bin/sh\necho \"$@\" >> '{path}.calls'\necho loading\ncat '{path}.json'\n")
        path.chmod(0o755)
        path.with_name(name + ".json").write_text(json.dumps(rows))
        return path

    def test_rows_of_llama_bench(self):
        rows = [{"n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ns": 32e9}, {"n_prompt": 0, "n_gen": 32, "n_depth": 0, "avg_ns": 4e9},
                {"n_prompt": 0, "n_gen": 32, "n_depth": 2048, "avg_ns": 8e9}]
        program = self.program("llama", rows)
        with mock.patch.dict(compare_engines.PROGRAMS, {"llama.cpp": program}):
            found = compare_engines.llama("m.gguf", self.OPTIONS)
        speeds = {key: row["tokens_per_s"] for key, row in found.items()}
        self.assertEqual(speeds, {("prefill", 512): 16, ("decode", 0): 8, ("decode", 2048): 4})
        calls = (self.dir / "llama.calls").read_text()
        self.assertIn("-p 512,2048 -n 0", calls)
        self.assertIn("-p 0 -n 32 -d 0,2048", calls)

    def test_rows_of_ik_llama_bench(self):
        rows = [{"n_prompt": 512, "n_gen": 0, "avg_ns": 16e9}, {"n_prompt": 0, "n_gen": 32, "avg_ns": 4e9}, {"n_prompt": 2048, "n_gen": 32, "avg_ns": 8e9}]
        program = self.program("ik", rows)
        with mock.patch.dict(compare_engines.PROGRAMS, {"ik_llama.cpp": program}):
            found = compare_engines.ik_llama("m.gguf", self.OPTIONS)
        speeds = {key: row["tokens_per_s"] for key, row in found.items()}
        self.assertEqual(speeds, {("prefill", 512): 32, ("decode", 0): 8, ("decode", 2048): 4})
        self.assertIn("-n 32 -gp 2048,32", (self.dir / "ik.calls").read_text())

    def test_the_best_of_the_others_is_what_counts(self):
        own = {"tokens_per_s": 20.0, "percent_of_floor": 80.0, "ceiling": "memory", "check_error": 0}
        best = {("m", "decode", 0): {"nibble": own, "llama.cpp": {"tokens_per_s": 5.0}, "ik_llama.cpp": {"tokens_per_s": 10.0}},
                ("m", "prefill", 512): {"nibble": own, "llama.cpp": {"tokens_per_s": 40.0}}}
        rows = compare_engines.rows_of(best)
        self.assertEqual([row["nibble_is"] for row in rows], [2, 0.5])
        self.assertEqual((rows[0]["context"], rows[1]["tokens"]), (0, 512))
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            compare_engines.show(rows, list(compare_engines.RUN))
        self.assertIn("2.00 times the best", shown.getvalue())
        self.assertIn("decode behind 0", shown.getvalue())

    def test_room_is_asked_for_first(self):
        options = types.SimpleNamespace(models=["gpt-oss-20b"], engines=["nibble"])
        for disk, memory, says in ((1e9, 1e12, "of disk"), (1e12, 1e9, "of memory")):
            free = types.SimpleNamespace(free=disk)
            with (mock.patch.object(compare_engines, "WORK", self.dir),
                  mock.patch.object(compare_engines.shutil, "disk_usage", return_value=free),
                  mock.patch.object(compare_engines, "available_memory", return_value=memory),
                  self.assertRaises(SystemExit) as refused):
                compare_engines.check_room(options)
            self.assertIn(says, str(refused.exception.code))
            self.assertIn("1.0 GB", str(refused.exception.code))


def gguf_keys(config):
    sizes = {"architecture": "qwen3moe", "vocabulary": config["vocab_size"], "layers": config["num_hidden_layers"], "hidden": config["hidden_size"],
             "heads": config["num_attention_heads"], "kv_heads": config["num_key_value_heads"], "head_dim": config["head_dim"],
             "experts": config["num_experts"], "used": config["num_experts_per_tok"], "width": config["moe_intermediate_size"],
             "dense": config["intermediate_size"], "context": config["max_position_embeddings"], "theta": config["rope_theta"],
             "eps": config["rms_norm_eps"]}
    return random_gguf.keys_of(sizes, "tiny")


GGUF_NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
              "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
              "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate": "ffn_gate_inp"}


def gguf_tensors(tensors, config):
    """The same numbers under GGUF's names: experts in stacks, norms and router in float32."""
    made = []

    def add(name, shape, data, plain):
        if plain:
            data = b"".join(b"\0\0" + data[at : at + 2] for at in range(0, len(data), 2))
        made.append(random_gguf.Tensor(name, "F32" if plain else "BF16", shape, lambda tensor: [data]))

    for ours, theirs in (("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output")):
        _, shape, data = tensors[ours + ".weight"]
        add(theirs + ".weight", shape, data, len(shape) == 1)
    for layer in range(config["num_hidden_layers"]):
        for ours, theirs in GGUF_NAMES.items():
            _, shape, data = tensors[f"model.layers.{layer}.{ours}.weight"]
            add(f"blk.{layer}.{theirs}.weight", shape, data, len(shape) == 1 or ours == "mlp.gate")
        for part in ("gate", "up", "down"):
            names = [f"model.layers.{layer}.mlp.experts.{e}.{part}_proj.weight" for e in range(config["num_experts"])]
            shape = [len(names), *tensors[names[0]][1]]
            add(f"blk.{layer}.ffn_{part}_exps.weight", shape, b"".join(tensors[name][2] for name in names), False)
    return made


if __name__ == "__main__":
    unittest.main()
