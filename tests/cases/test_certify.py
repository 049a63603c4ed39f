#!/usr/bin/env python3
"""nibble certify from outside: the keys, what a candidate's own answers say, gates, refusals."""
import unittest

from checkpoints import *  # noqa: F403

MODELS = ROOT / "tests" / "golden" / "models"


def run(*arguments):
    return subprocess.run([NIBBLE, *map(str, arguments)], capture_output=True, text=True, timeout=600)


def answer_of(model, prompt, count):
    """What the model writes by itself."""
    made = run("generate", model, "--tokens", ",".join(map(str, prompt)), "-n", count, "--ignore-end", "--json", "--quiet")
    return json.loads(made.stdout)["tokens"]


class Certify(CaseTest):
    PROMPTS = ([1, 2, 3], [40, 7], [9, 9, 9, 30, 12], [100, 101])
    LENGTH = 24

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.reference = MODELS / "qwen3_moe"

    def candidate(self, format="int4-g32"):
        folder = self.dir / format
        made = run("quantize", self.reference, folder, "--format", format, "--include", "all_linears", "--quiet")
        self.assertEqual(made.returncode, 0, made.stderr)
        return folder

    def prompts(self):
        path = self.dir / "prompts.jsonl"
        path.write_text("".join(json.dumps({"tokens": prompt}) + "\n" for prompt in self.PROMPTS))
        return path

    def certify(self, *arguments, code=0):
        made = run("certify", *arguments, "--json", "--quiet")
        self.assertEqual(made.returncode, code, made.stderr)
        return json.loads(made.stdout)

    def test_first_divergences_are_where_its_own_answers_leave(self):
        candidate = self.candidate()
        chains = self.dir / "chains.jsonl"
        result = self.certify(self.reference, candidate, "--prompts", self.prompts(), "--length", self.LENGTH, "--write-chains", chains)
        row = result["candidates"][0]
        written = [json.loads(line) for line in chains.read_text().splitlines()]
        parted = 0
        for prompt, chain, first in zip(self.PROMPTS, written, row["first_divergence"]):
            self.assertEqual(chain["prompt"], prompt)
            self.assertEqual(chain["answer"], answer_of(self.reference, prompt, self.LENGTH)[: len(chain["answer"])])
            own = answer_of(candidate, prompt, len(chain["answer"]))
            differs = [i for i, (a, b) in enumerate(zip(chain["answer"], own)) if a != b]
            self.assertEqual(first, differs[0] if differs else None)
            parted += bool(differs)
        self.assertGreater(parted, 0)
        self.assertEqual(row["whole"], 1 - parted / len(self.PROMPTS))
        self.assertEqual(row["reference_flips"], 0)
        self.assertEqual(row["tokens"], sum(len(chain["answer"]) for chain in written))
        # The same from the chains as a file, and with another number of threads.
        again = self.certify(self.reference, candidate, "--chains", chains, "--threads", 1)["candidates"][0]
        for key in ("first_divergence", "flips", "kl_mean", "incidence", "horizon"):
            self.assertEqual(again[key], row[key])

    def test_the_reference_is_itself(self):
        row = self.certify(self.reference, self.reference, "--prompts", self.prompts(), "--length", self.LENGTH, "--noise", "none")["candidates"][0]
        self.assertEqual((row["flips"], row["kl_mean"], row["whole"]), (0, 0, 1))
        self.assertIsNone(row["horizon"]["measured"])
        # No flip in N tokens excludes horizons below 0.231 N.
        self.assertTrue(row["horizon"]["implied_is_a_lower_bound"])
        self.assertAlmostEqual(row["horizon"]["implied"], 0.23138 * row["tokens"], delta=0.01 * row["tokens"])

    def test_several_candidates_a_page_and_the_manifest(self):
        candidates = [self.candidate(format) for format in ("int4-g32", "nvfp4")]
        page = self.dir / "page.html"
        before = json.loads((candidates[0] / "nibble.json").read_text())
        result = self.certify(self.reference, *candidates, "--prompts", self.prompts(), "--length", 8, "--html", page)
        self.assertEqual([row["name"] for row in result["candidates"]], ["int4-g32", "nvfp4"])
        text = page.read_text()
        for word in ("int4-g32", "nvfp4", "<svg", "Where they part"):
            self.assertIn(word, text)
        self.assertNotIn("http", text.replace("http-equiv", ""))
        after = json.loads((candidates[0] / "nibble.json").read_text())
        certificate = after.pop("certificate")
        self.assertEqual(after, before)
        self.assertEqual(certificate["flips"], result["candidates"][0]["flips"])
        self.assertEqual(certificate["reference"], "qwen3_moe")
        # What is recorded beside the weights takes nothing from them.
        self.assertEqual(run("verify", candidates[0]).returncode, 0)
        self.assertEqual(run("quantize", self.reference, candidates[0], "--format", "int4-g32", "--include", "all_linears").returncode, 0)

    def test_attribution_names_what_was_damaged(self):
        # Only the second layer's experts are other than the reference's: no other group is tried.
        candidate = self.dir / "one-layer"
        experts = "name:model.layers.1.mlp.experts.*"
        made = run("quantize", self.reference, candidate, "--format", "int4-g32", "--rule", "int4.amax7", "--include", experts, "--quiet")
        self.assertEqual(made.returncode, 0, made.stderr)
        page = self.dir / "page.html"
        common = (self.reference, candidate, "--prompts", self.prompts(), "--length", self.LENGTH, "--noise", "none")
        row = self.certify(*common, "--attribute", "--html", page)["candidates"][0]
        parted = sum(first is not None for first in row["first_divergence"])
        self.assertGreater(parted, 0)
        (group,) = row["attribution"]
        self.assertEqual((group["layer"], group["role"], group["healed"], group["of"]), (1, "routed_expert", parted, parted))
        self.assertEqual(group["kl_after"], 0)
        self.assertGreater(group["kl_before"], 0)
        self.assertGreater(group["margin_gain"], 0)
        basis = row["attribution_basis"]
        self.assertEqual((basis["first_divergences"], basis["tried"], basis["left_out"]), (parted, parted, 0))
        self.assertIn({"layer": 0, "role": "routed_expert"}, basis["same"])
        self.assertIn({"layer": None, "role": "head"}, basis["same"])
        self.assertEqual(row["attribution_cost"]["sweeps"], 1)
        recorded = json.loads((candidate / "nibble.json").read_text())["certificate"]
        self.assertEqual(recorded["attribution"], row["attribution"])
        text = page.read_text()
        self.assertIn("Which weights it comes from", text)
        self.assertIn(f"layer 1, routed_expert heals {parted} of {parted}", text)
        table = run("certify", *common, "--attribute", "--attribute-places", 1, "--seed", 3, "--quiet").stdout
        self.assertIn("layer 1, routed_expert heals 1 of 1", table)
        self.assertIn("layer passes", table)
        if parted > 1:
            self.assertIn("drawn with seed 3", table)
        itself = self.certify(self.reference, self.reference, "--prompts", self.prompts(), "--length", 8, "--noise", "none", "--attribute")
        self.assertEqual(itself["candidates"][0]["attribution"], [])

    def test_gates_are_an_exit_code(self):
        candidate = self.candidate()
        common = (self.reference, candidate, "--prompts", self.prompts(), "--length", 8, "--no-record")
        good = self.certify(*common, "--gate", "flip_rate<=1,horizon>=0")
        self.assertTrue(good["gate"]["holds"])
        bad = self.certify(*common, "--gate", "flip_rate<=0", code=1)
        self.assertFalse(bad["gate"]["holds"])
        self.assertIn("flip_rate", bad["gate"]["failures"][0])
        self.assertIn("candidates", bad)  # a "no" still prints all
        self.assertNotIn("certificate", json.loads((candidate / "nibble.json").read_text()))

    def test_tasks_are_run_freely(self):
        # The tiny model was trained on nothing: it is wrong, and the figures say so.
        result = self.certify(self.reference, self.candidate(), "--task", "table-walk:symbols=64,tables=2", "--length", 16, "--task-chains", 6)
        for score in (result["reference_checkable"], result["candidates"][0]["checkable"]):
            self.assertEqual((score["chains"], score["steps"]), (6, 96))
            self.assertLess(score["single_step"], 0.5)
        self.assertEqual(result["candidates"][0]["reference_flips"], 0)
        for key in ("standard_error", "mean_run", "whole", "truncated", "contexts", "cycles"):
            self.assertIn(key, result["candidates"][0]["checkable"])

    def test_inputs_of_a_task_are_given_and_not_judged(self):
        chains = self.dir / "chains.jsonl"
        row = self.certify(self.reference, self.reference, "--task", "state-machine:symbols=32,seed=3", "--length", 12, "--task-chains", 4,
                           "--write-chains", chains, "--noise", "none")["candidates"][0]
        self.assertEqual((row["tokens"], row["flips"], row["reference_flips"]), (48, 0, 0))
        for chain in map(json.loads, chains.read_text().splitlines()):
            self.assertEqual(chain["given"], list(range(1, 23, 2)))  # behind each choice but the last
            self.assertEqual(len(chain["answer"]), 23)
            self.assertTrue(chain["capped"])

    def refused(self, code, *words, arguments):
        made = run("certify", *arguments, "--json")
        self.assertEqual(made.returncode, code, made.stderr)
        error = json.loads(made.stdout)["error"]
        for word in words:
            self.assertIn(word, json.dumps(error))

    def test_refusals(self):
        other = MODELS / "mixtral"
        prompts = self.prompts()
        chains = self.dir / "bad.jsonl"
        pair = (self.reference, self.reference)
        self.refused(1, "family", "mixtral", arguments=[self.reference, other, "--prompts", prompts])
        self.refused(2, "one place", arguments=[*pair, "--prompts", prompts, "--task", "table-walk"])
        self.refused(2, "flip_rate", arguments=[*pair, "--gate", "flips<=1"])
        self.refused(1, "positions", arguments=[*pair, "--prompts", prompts, "--length", 100000])
        self.refused(1, "vocabulary", arguments=[*pair, "--task", "table-walk:symbols=1000"])
        self.refused(2, "table-walk", arguments=[*pair, "--task", "table-wolk"])
        self.refused(2, "symbols", arguments=[*pair, "--task", "table-walk:symbols=1"])
        for line, word in (('{"prompt": [1], "answer": [999]}', "999"), ('{"prompt": [1], "answer": []}', "answer_tokens"),
                           ("[1]", "no chain"), ("", "no chain")):
            chains.write_text(line + "\n")
            self.refused(1, word, arguments=[*pair, "--chains", chains])


if __name__ == "__main__":
    unittest.main()
