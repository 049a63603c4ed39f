#!/usr/bin/env python3
"""nibble generate and nibble kernels from outside: keys, figures, refusals."""
import json
import os
import pathlib
import subprocess
import unittest

NIBBLE = os.environ["NIBBLE"]
MODELS = pathlib.Path(__file__).resolve().parent.parent / "golden" / "models"


def run(*arguments):
    return subprocess.run([NIBBLE, *map(str, arguments)], capture_output=True, text=True, timeout=600)


def generate(model, *arguments):
    result = run("generate", MODELS / model, "--tokens", "1,2,3,4,5", "--json", *arguments)
    return result.returncode, json.loads(result.stdout)


class Generate(unittest.TestCase):
    def test_keys_and_figures(self):
        code, answer = generate("qwen3_moe_int4", "-n", 8, "--ignore-end")
        self.assertEqual(code, 0)
        self.assertEqual(answer["prompt_tokens"], 5)
        self.assertEqual(len(answer["tokens"]), 8)
        self.assertEqual(answer["finish"], "length")
        for phase, share in (("prefill", "percent_of_ceiling"), ("decode", "percent_of_floor")):
            self.assertGreater(answer[phase]["tokens_per_s"], 0)
            self.assertGreater(answer[phase][share], 0)
        # 2 of 4 experts of 2 layers, attention and head: less than the whole file, more than the head.
        self.assertGreater(answer["decode"]["bytes_per_token"], 256 * 64 * 2)
        self.assertLess(answer["decode"]["bytes_per_token"], 400_000)

    def test_the_same_tokens_whatever_the_threads(self):
        answers = [generate("gpt_oss_mxfp4", "-n", 12, "--ignore-end", "--threads", threads)[1]["tokens"] for threads in (1, 2, 3)]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])

    def test_seeds_draw_and_repeat(self):
        draw = lambda seed: generate("llama", "-n", 16, "--temperature", 1, "--seed", seed, "--ignore-end")[1]["tokens"]
        self.assertEqual(draw(1), draw(1))
        self.assertNotEqual(draw(1), draw(2))

    def test_schemes_caches_and_experts(self):
        for options in (["--scheme", "w4a8"], ["--kv", "fp8"], ["--kv", "fp8", "--kv-scale", "1"], ["--experts-per-token", 1]):
            code, answer = generate("qwen3_moe_int4", "-n", 4, "--ignore-end", *options)
            self.assertEqual(code, 0, options)
            self.assertEqual(len(answer["tokens"]), 4)

    def refused(self, code, *words, arguments):
        result = run("generate", *arguments, "--json")
        self.assertEqual(result.returncode, code, result.stderr)
        error = json.loads(result.stdout)["error"]
        text = json.dumps(error)
        for word in words:
            self.assertIn(word, text)
        self.assertTrue(error["ways_out"])

    def test_refusals(self):
        llama = MODELS / "llama"
        self.refused(1, "vocabulary", "999", arguments=[llama, "--tokens", "1,999", "-n", 4])
        self.refused(1, "positions", "512", arguments=[llama, "--tokens", "1,2", "-n", 512])
        self.refused(1, "no experts", arguments=[llama, "--tokens", "1", "--experts-per-token", 2])
        self.refused(1, "experts", "4", arguments=[MODELS / "mixtral", "--tokens", "1", "--experts-per-token", 5])
        self.refused(2, "prompt", arguments=[llama])
        self.refused(2, "whole number", arguments=[llama, "--tokens", "1,x"])
        self.refused(1, "tokenizer", arguments=[llama, "-p", "Hello"])


class Kernels(unittest.TestCase):
    def test_one_is_chosen_and_the_rest_have_reasons(self):
        result = run("kernels", "--format", "mxfp4", "--tokens", 4, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        candidates = json.loads(result.stdout)["candidates"]
        self.assertEqual([c["verdict"] for c in candidates].count("chosen"), 1)
        for candidate in candidates:
            self.assertEqual(candidate["cost_us"] is None, candidate["verdict"] == "no")
            self.assertTrue(candidate["reason"] or candidate["verdict"] == "ok")

    def test_forced_and_unknown(self):
        self.assertEqual(run("kernels", "--format", "mxfp4", "--kernel", "reference").returncode, 0)
        self.assertEqual(run("kernels", "--format", "mxfp4", "--kernel", "none").returncode, 1)
        self.assertEqual(run("kernels", "--format", "int8-g32-asym").returncode, 1)
        self.assertEqual(run("kernels", "--format", "mxfp5").returncode, 1)


if __name__ == "__main__":
    unittest.main()
