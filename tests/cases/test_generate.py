#!/usr/bin/env python3
"""nibble generate, nibble bench --perplexity and nibble kernels from outside: keys, figures, refusals."""
import resource
import unittest

from checkpoints import *  # noqa: F403

MODELS = ROOT / "tests" / "golden" / "models"


def run(*arguments, **options):
    return subprocess.run([NIBBLE, *map(str, arguments)], capture_output=True, text=True, timeout=600, **options)


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
        for options in (["--scheme", "w4a8"], ["--kv", "fp8", "--kv-scale", "dynamic"], ["--kv", "fp8", "--kv-scale", "1"],
                        ["--experts-per-token", 1]):
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


class BeforeWeights(CaseTest):
    """Refused before weights are read: the model is far larger than the memory that the process may have."""

    def refused_at_once(self, folder, *arguments, says):
        limit = 1280 << 20

        def limited():
            if not SANITIZED:  # which need the address space
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        return self.refused("generate", folder, *arguments, "--threads", 2, says=says, preexec_fn=limited)

    def test_refusals_with_their_numbers(self):
        folder = self.dir / "large"
        size = sparse_model(folder, layers=4, experts=64, hidden=1024, width=2048)
        self.assertGreater(size, 3 << 30)
        self.refused_at_once(folder, "-p", "Hello", says=["tokenizer", str(folder)])
        self.refused_at_once(folder, "--tokens", ",".join(["1"] * 500), "-n", 13, says=["positions", 512, 500, 13])
        self.refused_at_once(folder, "--tokens", "1,64", says=["vocabulary", 64])
        self.refused_at_once(folder, "--tokens", "1,-1", says=["vocabulary", 64, -1])
        self.refused_at_once(folder, "--tokens", "1", "--experts-per-token", 65, says=["experts", 64, 65])
        self.refused_at_once(folder, "--tokens", "1", "--kv", "fp8", says=["--kv-scale dynamic", "--kv-scale 1", "--kv bf16"])

    def test_no_memory(self):
        folder = self.dir / "larger"
        size = sparse_model(folder, layers=1, experts=512, hidden=32768, width=16384)
        self.assertGreater(size, 1.6e12)
        self.refused_at_once(folder, "--tokens", "1", says=["larger than the memory", "1.65 TB", "available", "nibble quantize"])

    def test_an_unsupported_family(self):
        folder = self.dir / "other"
        sparse_model(folder, layers=4, experts=64, hidden=1024, width=2048)
        config = json.loads((folder / "config.json").read_text())
        for family in ("bert", "mamba2"):
            (folder / "config.json").write_text(json.dumps(dict(config, model_type=family, architectures=["Other"])))
            self.refused_at_once(folder, "--tokens", "1", says=["does not run this model", family, "llama", "qwen3_moe"])

    def test_weights_that_no_kernel_multiplies(self):
        """Eight bits with zero points: the message names the weight and the command that converts it."""
        tensors, config = qwen3_moe(layers=1)
        stem = "model.layers.0.self_attn.o_proj."
        del tensors[stem + "weight"]
        tensors[stem + "weight_packed"] = ("I32", [64, 16], bytes(64 * 64))
        tensors[stem + "weight_scale"] = ("BF16", [64, 2], pack_bf16([0.5] * 128))
        tensors[stem + "weight_zero_point"] = ("I32", [16, 2], bytes(128))
        tensors[stem + "weight_shape"] = ("I64", [2], struct.pack("<2q", 64, 64))
        weights = {"num_bits": 8, "type": "int", "strategy": "group", "group_size": 32, "symmetric": False}
        config["quantization_config"] = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": [],
                                         "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}
        folder = write_folder(self.dir / "s", tensors, config)
        self.refused("generate", folder, "--tokens", "1", says=["no kernel", stem + "weight", "nibble quantize", str(folder)])


class CacheScales(CaseTest):
    SPELLINGS = (("k_scale", "v_scale"), ("k_proj.k_scale", "v_proj.v_scale"), ("kv_scale",),
                 ("k_proj.output_scale", "v_proj.output_scale"))

    def answer(self, folder, *options):
        return self.done("generate", folder, "--tokens", "1,2,3,4,5,6,7,8,9", "-n", 24, "--ignore-end", "--kv", "fp8", *options)

    def test_C63_without_scales_the_user_chooses(self):
        folder = write_folder(self.dir / "s", *qwen3_moe())
        three = ("--kv-scale dynamic", "--kv-scale 1", "--kv bf16")
        for options in ((), ("--kv-scale", "checkpoint")):
            outcome = self.refused("generate", folder, "--tokens", "1", "--kv", "fp8", *options, says=["no scales", str(folder)])
            ways = outcome.json["error"]["ways_out"]
            self.assertEqual([way.split(":")[0] for way in ways], list(three))
        for choice in ("dynamic", "1"):
            outcome = self.answer(folder, "--kv-scale", choice)
            self.assertEqual(outcome.json["kv"], {"type": "fp8", "scale": choice})
            self.assertIn("scales: " + choice, outcome.err)
        outcome = self.done("generate", folder, "--tokens", "1", "-n", 1)
        self.assertEqual(outcome.json["kv"], {"type": "bf16", "scale": "none"})

    def test_C65_every_spelling_gives_the_same_answer(self):
        tensors, config = qwen3_moe()
        answers = []
        for spelling in self.SPELLINGS:
            named = {"model.layers.%d.self_attn.%s" % (layer, name): ("F32", [1], pack_f32([0.02])) for layer in range(2) for name in spelling}
            folder = write_folder(self.dir / "s", {**tensors, **named}, config)
            for options in ((), ("--kv-scale", "checkpoint")):
                outcome = self.answer(folder, *options)
                self.assertEqual(outcome.json["kv"], {"type": "fp8", "scale": "checkpoint"})
                self.assertIn("scales: checkpoint", outcome.err)
                answers.append(outcome.json["tokens"])
        for answer in answers:
            self.assertEqual(answer, answers[0])

    def test_scales_that_cannot_be_used(self):
        tensors, config = qwen3_moe()
        names = ["model.layers.%d.self_attn.%s" % (layer, name) for layer in range(2) for name in ("k_scale", "v_scale")]
        good = {name: ("F32", [1], pack_f32([0.02])) for name in names}
        for change, says in (({names[3]: None}, [names[3]]), ({names[2]: ("F32", [1], pack_f32([0.0]))}, [names[2], "above zero"]),
                             ({names[1]: ("F32", [3], pack_f32([1, 2, 3]))}, [names[1], "3", "2"])):
            scales = {name: value for name, value in {**good, **change}.items() if value is not None}
            folder = write_folder(self.dir / "s", {**tensors, **scales}, config)
            self.refused("generate", folder, "--tokens", "1", "--kv", "fp8", says=[*says, "--kv-scale dynamic"])
            self.answer(folder, "--kv-scale", "dynamic")


class FromTheField(CaseTest):
    def test_C05_an_expert_whose_gate_is_zero_gives_finite_logits(self):
        """SiLU(0) times up is 0 for every token: the activations of its down projection are all zero."""
        tensors, config = qwen3_moe()
        tensors["model.layers.0.mlp.experts.1.gate_proj.weight"] = ("BF16", [32, 64], bytes(32 * 64 * 2))
        write_folder(self.dir / "s", tensors, config)
        for format_name, schemes in (("int4-g32", ("w4a16", "w4a8")), ("mxfp4", ("w4a8", "w4a4")), ("nvfp4", ("w4a8", "w4a4"))):
            self.done("quantize", self.dir / "s", self.dir / format_name, "--format", format_name, "--include", "all_linears")
            for scheme in schemes:
                outcome = self.done("generate", self.dir / format_name, "--tokens", "1,2,3", "-n", 8, "--ignore-end", "--scheme", scheme,
                                    "--experts-per-token", 4)
                self.assertEqual(outcome.json["finish"], "length")
                self.assertEqual(len(outcome.json["tokens"]), 8)

    def test_C108_every_instruction_set_gives_the_same_bits(self):
        lists = self.dir / "tokens.jsonl"
        lists.write_text("[1,2,3,4,5,6,7,8,9,10,11,12]\n")
        for model in ("qwen3_moe_int4", "gpt_oss_mxfp4", "deepseek_v3_fp8"):
            for scheme in ("w4a16", "w4a8"):
                seen = []
                for isa in ("scalar", "avx2", "avx512"):
                    scores = self.dir / "scores.jsonl"
                    self.done("bench", "--perplexity", lists, "--model", MODELS / model, "--per-token", scores, "--scheme", scheme,
                              env=dict(os.environ, NIBBLE_ISA=isa))
                    seen.append(scores.read_text())
                self.assertEqual(len(seen[0].splitlines()), 11)
                self.assertEqual(seen[0], seen[1], (model, scheme))
                self.assertEqual(seen[0], seen[2], (model, scheme))


class Perplexity(CaseTest):
    LISTS = [[1, 2, 3, 4, 5], [9, 8], list(range(40))]

    def scores(self, model, *options):
        lists, out = self.dir / "tokens.jsonl", self.dir / "scores.jsonl"
        lists.write_text("".join(json.dumps(ids) + "\n" for ids in self.LISTS))
        outcome = self.done("bench", "--perplexity", lists, "--model", model, "--per-token", out, *options)
        return outcome.json, [json.loads(line) for line in out.read_text().splitlines()]

    def test_every_token_of_a_list_has_its_line(self):
        answer, lines = self.scores(MODELS / "llama", "--kv", "f32")
        self.assertEqual([(line["window"], line["position"]) for line in lines],
                         [(w, p) for w, ids in enumerate(self.LISTS) for p in range(1, len(ids))])
        for line in lines:
            self.assertEqual(line["token"], self.LISTS[line["window"]][line["position"]])
            self.assertTrue(line["counted"])
            self.assertGreaterEqual(line["best_logit"], line["second_logit"])
            self.assertGreaterEqual(line["best_logit"], line["logit"])
            self.assertEqual(line["token"] == line["best"], line["logit"] == line["best_logit"])
        self.assertEqual((answer["tokens"], answer["windows"]), (44, 3))
        self.assertAlmostEqual(answer["mean_nll"], sum(line["nll"] for line in lines) / 44, 9)

    def test_streaming_gives_the_same_lines_and_holds_a_layer(self):
        for model in ("qwen3_moe_nvfp4", "gpt_oss", "deepseek_v3"):
            whole, lines = self.scores(MODELS / model)
            streamed, again = self.scores(MODELS / model, "--stream")
            self.assertEqual(lines, again)
            self.assertEqual(whole["mean_nll"], streamed["mean_nll"])
            self.assertTrue(streamed["streamed"])
            self.assertLess(streamed["bytes_held"], whole["bytes_held"])

    def test_greedy_choices_are_what_generate_writes(self):
        made = self.done("generate", MODELS / "mixtral", "--tokens", "1,2,3,4,5", "-n", 8, "--ignore-end").json["tokens"]
        self.LISTS = [[1, 2, 3, 4, 5, *made]]
        _, lines = self.scores(MODELS / "mixtral")
        self.assertEqual([line["best"] for line in lines[4:]], made)

    def test_lists_that_are_none(self):
        lists = self.dir / "tokens.jsonl"
        for text, says in (("[1]\n", "line 1"), ("[1,2]\n[1,2.5]\n", "line 2"), ("[1,2]\n7\n", "line 2"), ("", "no list"),
                           ("[1,4294967298]\n", "line 1"), ("[1,-1]\n", "line 1"), ("[1,256]\n", "vocabulary"), ("[1,\n", "line 1")):
            lists.write_text(text)
            self.refused("bench", "--perplexity", lists, "--model", MODELS / "llama", says=[says])


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
