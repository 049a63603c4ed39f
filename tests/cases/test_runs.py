"""Cases of section 1.3: memory, resume, disk, refusals before the work."""

import resource
import signal
import unittest

from checkpoints import *  # noqa: F403


class Runs(CaseTest):
    @unittest.skipIf(SANITIZED, "a sanitizer needs the address space")
    def test_C19_the_model_is_larger_than_the_memory(self):
        """A fifth of the case's 8 GiB, with a fifth of its memory limit to the process beyond its fixed buffers."""
        size = sparse_model(self.dir / "s", layers=40, experts=8, hidden=1024, width=832)
        self.assertGreater(size, 1536 << 20)
        limit = 1280 << 20  # of address space: nothing may be mapped whole either

        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        for format_name, layout in (("int4-g32", "compressed-tensors"), ("nvfp4", "modelopt")):
            outcome = self.done("quantize", self.dir / "s", self.dir / "t", "--format", format_name, "--layout", layout,
                                "--shard-size", "100MB", "--threads", "2", preexec_fn=limited)
            self.assertLess(outcome.json["peak_rss_bytes"], outcome.json["buffer_bytes"] + (256 << 20))
            self.assertGreater(outcome.json["bytes_out"], size // 4)
            text = self.nibble("quantize", self.dir / "s", self.dir / "t", "--format", format_name, "--layout", layout,
                               "--shard-size", "100MB", "--threads", "2", preexec_fn=limited)
            self.assertIn("peak memory", text.out.strip().splitlines()[-1])
            shutil.rmtree(self.dir / "t")

    def test_C21_a_resumed_run_refuses_what_has_changed(self):
        tensors, config = qwen3_moe(layers=4)
        options = ("--format", "int4-g32", "--shard-size", "60kB")

        def stopped_half_way():
            shutil.rmtree(self.dir / "t", ignore_errors=True)
            write_folder(self.dir / "s", tensors, config)
            half = self.done("quantize", self.dir / "s", self.dir / "t", *options, "--worker", "1/2")
            self.assertFalse(half.json["finished"])

        def resume(*changed, says):
            outcome = self.refused("quantize", self.dir / "s", self.dir / "t", *(changed or options), says=says)
            self.assertTrue(any("--restart" in way for way in outcome.json["error"]["ways_out"]), outcome.text)
            self.assertFalse((self.dir / "t/nibble.json").exists())
            self.done("quantize", self.dir / "s", self.dir / "t", *(changed or options), "--restart")

        stopped_half_way()
        data = bytearray((self.dir / "s/model.safetensors").read_bytes())
        data[-9] ^= 1
        (self.dir / "s/model.safetensors").write_bytes(bytes(data))
        resume(says=["model.safetensors", "old", "new"])
        stopped_half_way()
        resume("--format", "int4-g16", "--shard-size", "60kB", says=["recipe.format", "int4-g32", "int4-g16"])
        stopped_half_way()
        resume(*options, "--rule", "int4.amax7", says=["int4.amax7_5", "int4.amax7"])
        stopped_half_way()
        write_folder(self.dir / "s", tensors, dict(config, rope_theta=5e5))
        os.utime(self.dir / "s/model.safetensors", ns=(0, 0))
        journal = json.loads((self.dir / "t/.nibble/run.json").read_text())
        journal["source"]["files"]["model.safetensors"]["modified_ns"] = 0
        (self.dir / "t/.nibble/run.json").write_text(json.dumps(journal))
        resume(says=["source.config.rope_theta", "1000000.0", "500000.0"])
        stopped_half_way()
        journal = json.loads((self.dir / "t/.nibble/run.json").read_text())
        journal["contract"] += 1
        (self.dir / "t/.nibble/run.json").write_text(json.dumps(journal))
        resume(says=["contract", journal["contract"], journal["contract"] - 1])

    def test_C21_a_finished_target_of_another_source_is_not_called_complete(self):
        tensors, config = qwen3_moe()
        source = write_folder(self.dir / "s", tensors, config)
        arguments = ("quantize", source, self.dir / "t", "--format", "mxfp4")
        self.done(*arguments)
        self.assertIn("already complete", self.done(*arguments).text)
        name = "model.layers.1.mlp.experts.0.up_proj.weight"
        tensors[name] = (tensors[name][0], tensors[name][1], tensors[name][2][2:] + tensors[name][2][:2])
        write_folder(source, tensors, config)
        self.refused(*arguments, says=[name, "old_xxh3_128", "new_xxh3_128", "--restart"])
        self.done(*arguments, "--restart")
        self.assertIn("already complete", self.done(*arguments).text)

    def test_killed_again_and_again_the_bytes_are_the_same(self):
        tensors, config = qwen3_moe(layers=8, experts=8, hidden=128, width=64)
        source = write_folder(self.dir / "s", tensors, config)
        options = ("--format", "nvfp4", "--shard-size", "150kB")
        seconds = self.done("quantize", source, self.dir / "whole", *options).json["seconds"]
        rng = random.Random(8)
        for signal_number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
            target = self.dir / ("t%d" % signal_number)
            for _ in range(6):
                child = subprocess.Popen([NIBBLE, "quantize", str(source), str(target), *options, "--quiet"],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    child.wait(rng.uniform(0.01, seconds))
                except subprocess.TimeoutExpired:
                    child.send_signal(signal_number)
                    child.wait()
            self.done("quantize", source, target, *options)
            self.assertEqual(sorted(p.name for p in target.iterdir()), sorted(p.name for p in (self.dir / "whole").iterdir()))
            for path in target.iterdir():
                self.assertEqual(path.read_bytes(), (self.dir / "whole" / path.name).read_bytes(), path.name)

    def test_the_same_command_twice_at_a_time(self):
        """The second is refused; the first, stopped meanwhile, ends as if it had been alone."""
        source = self.dir / "s"
        sparse_model(source, layers=4, experts=64, hidden=512, width=256)
        self.done("quantize", source, self.dir / "whole", "--format", "mxfp4")
        target = self.dir / "t"
        first = subprocess.Popen([NIBBLE, "quantize", str(source), str(target), "--format", "mxfp4", "--quiet"],
                                 stdout=subprocess.DEVNULL)
        while not (target / "model.safetensors.partial").exists():
            self.assertIsNone(first.poll(), "it ended before it could be stopped")
        first.send_signal(signal.SIGSTOP)
        try:
            self.refused("quantize", source, target, "--format", "mxfp4", says=["another process is writing this file"])
            self.refused("quantize", source, target, "--format", "mxfp4", "--restart", says=["another process works on this target"])
        finally:
            first.send_signal(signal.SIGCONT)
        self.assertEqual(first.wait(), 0)
        for path in (self.dir / "whole").iterdir():
            self.assertEqual(path.read_bytes(), (target / path.name).read_bytes(), path.name)
        self.assertFalse((target / ".nibble").exists())

    def test_targets_that_cannot_be_made(self):
        tensors, config = qwen3_moe(layers=1)
        source = write_folder(self.dir / "s", tensors, config)
        (self.dir / "file").write_text("x")
        for target in (self.dir / "file", self.dir / "file" / "t", "/proc/nibble/t", "/proc/nibble", self.dir / ("x" * 300)):
            refusal = self.refused("quantize", source, target, "--format", "mxfp4", says=[target])
            self.assertEqual(refusal.json["error"]["file"], str(target))
            self.assertIn("folder", refusal.json["error"]["message"])
        if os.geteuid() != 0:  # who may write anywhere
            (self.dir / "locked").mkdir(0o555)
            self.refused("quantize", source, self.dir / "locked/t", "--format", "mxfp4", says=["locked/t", "Permission denied"])
        self.assertEqual(self.nibble("quantize", source, "", "--format", "mxfp4").code, 2)
        (self.dir / "link").symlink_to(source)
        self.refused("quantize", source, self.dir / "link", "--format", "mxfp4", says=["source"])
        self.done("quantize", self.dir / "link", source / "inside", "--format", "mxfp4")
        self.done("verify", source / "inside", "--against", source)

    @unittest.skipIf(SANITIZED, "a sanitizer keeps what was freed")
    def test_C17_memory_does_not_grow_with_the_layers(self):
        peaks = []
        for layers in (1, 4):
            tensors, config = qwen3_moe(layers=1, experts=1, hidden=512, width=256, heads=4, kv_heads=2)
            config.update(num_hidden_layers=layers, num_experts=64)
            one = {n: t for n, t in tensors.items() if n.startswith("model.layers.0.")}
            for n, entry in one.items():
                for layer in range(layers):
                    for e in range(64 if ".experts." in n else 1):
                        tensors[n.replace("layers.0.", "layers.%d." % layer).replace("experts.0.", "experts.%d." % e)] = entry
                    if n.endswith("mlp.gate.weight"):
                        tensors[n.replace("layers.0.", "layers.%d." % layer)] = ("BF16", [64, 512], entry[2] * 64)
            source = write_folder(self.dir / ("s%d" % layers), tensors, config)
            outcome = self.done("quantize", source, self.dir / ("t%d" % layers), "--format", "int4-g32", "--threads", "1")
            peaks.append(outcome.json["peak_rss_bytes"])
            self.assertLessEqual(outcome.json["peak_rss_bytes"], 50331648 + 14155776 + outcome.json["buffer_bytes"])
        self.assertLess(peaks[1], peaks[0] + (16 << 20))

    def test_C29_illegal_group_is_refused_before_the_target_exists(self):
        tensors, config = qwen3_moe(layers=1, hidden=64, width=768)
        source = write_folder(self.dir / "s", tensors, config)
        self.refused("quantize", source, self.dir / "t", "--format", "int4-g512", says=["down_proj", 768, 512, "32 64 128 256"])
        self.assertFalse((self.dir / "t").exists())

    def test_C37_the_index_lists_exactly_the_new_files(self):
        tensors, config = qwen3_moe()
        names = list(tensors)
        shards = {"model-%05d-of-00010.safetensors" % (i + 1): {n: tensors[n] for n in names[i::10]} for i in range(10)}
        write_shards(self.dir / "s", shards, config)
        self.done("quantize", self.dir / "s", self.dir / "t", "--format", "int4-g32", "--shard-size", "45kB")
        index = json.loads((self.dir / "t/model.safetensors.index.json").read_text())
        files = sorted(p.name for p in (self.dir / "t").glob("*.safetensors"))
        self.assertGreater(len(files), 1)
        self.assertEqual(sorted(set(index["weight_map"].values())), files)
        stored = {}
        for file in files:
            self.assertNotIn("of-00010", file)
            for name, entry in read_safetensors(self.dir / "t" / file).items():
                self.assertNotIn(name, stored)
                stored[name] = entry
                self.assertEqual(index["weight_map"][name], file)
        self.assertEqual(set(stored), set(index["weight_map"]))
        self.assertEqual(index["metadata"]["total_size"], sum(len(d) for _, _, d in stored.values()))

    def test_no_shard_is_larger_than_asked_with_its_header(self):
        # Experts of 432 bytes whose entries in the header take as much again.
        source = write_folder(self.dir / "s", *qwen3_moe(layers=1, experts=40, hidden=32, width=16, vocabulary=64))
        for limit in (7000, 9001, 20000):
            outcome = self.done("quantize", source, self.dir / "t", "--format", "mxfp8", "--keep", "name:*down_proj", "--shard-size", limit, "--restart")
            sizes = [p.stat().st_size for p in (self.dir / "t").glob("*.safetensors")]
            self.assertLessEqual(max(sizes), limit)
            self.assertLessEqual(len(sizes), 2 * sum(sizes) // limit + 1)  # and they are not much emptier either
            self.assertEqual([note for note in outcome.json["notes"] if "larger" in note], [])
        outcome = self.done("quantize", source, self.dir / "t", "--format", "mxfp8", "--keep", "name:*down_proj", "--shard-size", 3000, "--restart")
        largest = max(p.stat().st_size for p in (self.dir / "t").glob("*.safetensors"))
        self.assertGreater(largest, 3000)
        self.assertIn(str(largest), next(note for note in outcome.json["notes"] if "larger" in note))

    def test_C37_restart_leaves_no_file_of_the_result_before(self):
        tensors, config = qwen3_moe()
        source = write_folder(self.dir / "s", tensors, config)
        self.done("quantize", source, self.dir / "t", "--format", "nvfp4", "--layout", "modelopt", "--shard-size", "30kB")
        for options in (("--shard-size", "90kB"), ()):
            self.done("quantize", source, self.dir / "t", "--format", "int4-g32", *options, "--restart")
            self.done("quantize", source, self.dir / "fresh", "--format", "int4-g32", *options)
            self.assertEqual(sorted(p.name for p in (self.dir / "t").iterdir()), sorted(p.name for p in (self.dir / "fresh").iterdir()))
            outcome = self.done("verify", self.dir / "t", "--against", source)
            self.assertEqual(self.findings(outcome, "error") + self.findings(outcome, "warning"), [])
            shutil.rmtree(self.dir / "fresh")

    def test_every_companion_is_carried_over(self):
        tensors, config = qwen3_moe()
        source = write_folder(self.dir / "s", tensors, config, tokenizer__json="{}", tokenizer_config__json="{}", merges__txt="a b\n", generation_config__json="{}", chat_template__jinja="x")
        self.done("quantize", source, self.dir / "t", "--format", "mxfp4")
        for name in ("tokenizer.json", "tokenizer_config.json", "merges.txt", "generation_config.json", "chat_template.jinja"):
            self.assertEqual((self.dir / "t" / name).read_text(), (source / name).read_text())

    def test_sub_folders_without_weights_are_carried_over_and_the_others_named(self):
        tensors, config = qwen3_moe(layers=1)
        source = write_folder(self.dir / "s", tensors, config, tokenizer__json="{}")
        carried = {"figures/a.png": "a", "figures/deep/b.txt": "b", "chat_templates/c.jinja": "c"}
        for name, text in {**carried, "original/params.json": "{}", "original/consolidated.00.pth": "x", "draft/config.json": "{}", ".cache/x": "x", "figures/.hidden": "x"}.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text)
        (source / "linked").symlink_to(self.dir)
        (source / "empty").mkdir()
        target = source / "target"  # inside the source: no companion of its own
        for option in ([], ["--restart"]):
            outcome = self.done("quantize", source, target, "--format", "mxfp4", *option)
            for name in ("original", "draft", "linked"):
                self.assertEqual(len([n for n in outcome.json["notes"] if "sub-folder %s " % name in n]), 1, outcome.json["notes"])
                self.assertIn("sub-folder " + name, outcome.err)
            self.assertEqual({str(p.relative_to(target)): p.read_text() for p in target.glob("*/**/*") if p.is_file()}, carried)
        self.assertTrue(self.done("verify", target, "--rederive", "--against", source).json["ok"])
        (target / "figures/deep/b.txt").write_text("B")
        self.refused("verify", target, "--rederive", "--against", source, says=["figures/deep/b.txt"])
        single = self.done("quantize", source / "model.safetensors", self.dir / "t2", "--format", "mxfp4", "--dry-run")
        self.assertEqual(single.json["notes"], [])

    def test_the_target_may_not_be_the_source_or_hold_foreign_files(self):
        tensors, config = qwen3_moe()
        source = write_folder(self.dir / "s", tensors, config)
        before = sorted(p.name for p in source.iterdir())
        self.refused("quantize", source, source, "--format", "mxfp4", says=["source"])
        self.assertEqual(sorted(p.name for p in source.iterdir()), before)
        (self.dir / "t").mkdir()
        (self.dir / "t/letter.txt").write_text("mine")
        for option in ((), ("--restart",)):
            self.refused("quantize", source, self.dir / "t", "--format", "mxfp4", *option, says=["other files"])
            self.assertEqual([p.name for p in (self.dir / "t").iterdir()], ["letter.txt"])

    def test_usage_errors_exit_with_2(self):
        for arguments in ([], ["quantise"], ["quantize"], ["verify"], ["quantize", "a", "b", "--format"], ["inspect", "a", "--nonsense"]):
            self.assertEqual(self.nibble(*arguments).code, 2, arguments)
        source = write_folder(self.dir / "s", *qwen3_moe(layers=1))
        quantize = ["quantize", source, self.dir / "t", "--format", "mxfp4"]
        words = (["--layout", "nonsense"], ["--layout", "modelopt"], ["--include", "nonsense"], ["--include", "routed_experts"], ["--include", "name:"],
                 ["--keep", "nonsense"], ["--keep", "name:"], ["--generic", "a("], ["--rule", "nonsense"], ["--rule", "int4.amax7"], ["--rule", "mse.nonsense"],
                 ["--worker", "3/2"], ["--worker", "0/2"], ["--worker", "x"], ["--worker", ""], ["--worker", "1/2", "--restart"], ["--shard-size", "x"], ["--shard-size", "0"], ["--shard-size", "-1GB"],
                 ["--threads", "0"], ["--threads", "x"], ["--bit-exact-with", "nonsense"], ["--resume", "--restart"], ["--nonsense"])
        for word in (*([*quantize, *word] for word in words), ["quantize", source, self.dir / "t", "--format", "nonsense"], ["quantize", source, "", "--format", "mxfp4"],
                     *(["verify", source, *word] for word in (["--tp", "0"], ["--tp", "x"], ["--ep", "-1"], ["--threads", "0"], ["--rederive"], ["--nonsense"])),
                     *(["inspect", source, *word] for word in (["--threads", "0"], ["--nonsense"], ["more"]))):
            for json_too in ([], ["--json"]):
                outcome = self.nibble(*word, *json_too)
                self.assertEqual(outcome.code, 2, (word, outcome.text))
            self.assertTrue(outcome.json["error"]["message"] and outcome.json["error"]["ways_out"], word)
            self.assertFalse((self.dir / "t").exists())

    def test_what_only_the_files_can_tell_exits_with_1(self):
        source = write_folder(self.dir / "s", *qwen3_moe(layers=1))
        for word in (["--include", "mtp"], ["--include", "name:nothing*"], ["--keep", "name:nothing*"], ["--generic", "nothing"]):
            self.refused("quantize", source, self.dir / "t", "--format", "mxfp4", *word, says=[word[1]])
        self.refused("quantize", self.dir / "none", self.dir / "t", "--format", "mxfp4", says=["none"])
        self.refused("verify", source, "--against", self.dir / "none", says=["none"])
        self.refused("inspect", self.dir / "none", says=["none"])

    def test_what_is_offered_can_be_chosen(self):
        source = write_folder(self.dir / "s", *qwen3_moe(layers=1))
        for name in ("nonsense", "int8-channel"):
            offered = self.nibble("quantize", source, self.dir / "t", "--format", name, "--json").json["error"]["ways_out"][0]
            self.assertNotIn("int8", offered)
            self.assertIn("mxfp4", offered)
        text = " ".join(self.nibble("quantize", "--help").out.split())
        rules = text[text.index("how scales are chosen:"):text.index("with the prefix mse.")]
        self.assertNotIn("int8", rules)
        for rule in ("int4.amax7_5", "int4.asym", "mx.floor", "nv.four_six", "fp8.ue8m0"):
            self.assertIn(rule, rules)

    def test_a_layout_is_refused_where_there_is_none(self):
        for option in (("--layout", "modelopt"), ("--bit-exact-with", "modelopt")):
            outcome = self.nibble("quantize", "a", "b", "--format", "bf16", *option)
            self.assertEqual(outcome.code, 2, option)
            self.assertIn("leave --layout", outcome.err)

    def test_a_refused_run_can_follow_its_own_advice(self):
        tensors, config = qwen3_moe(layers=1)
        name = "model.layers.0.mlp.experts.2.up_proj.weight"
        tensors[name] = ("BF16", [32, 64], b"\xc0\x7f" * (32 * 64))
        source = write_folder(self.dir / "s", tensors, config)
        refusal = self.refused("quantize", source, self.dir / "t", "--format", "mxfp4", says=[name])
        advice = next(way for way in refusal.json["error"]["ways_out"] if "--keep" in way)
        self.assertFalse((self.dir / "t").exists())
        self.done("quantize", source, self.dir / "t", "--format", "mxfp4", *advice[advice.index("--keep"):].split())

    def test_usage_errors_are_json_where_it_is_asked_for(self):
        for arguments in (["quantize", "--json"], ["verify", "a", "--threads", "0", "--json"], ["quantise", "--json"]):
            outcome = self.nibble(*arguments)
            self.assertEqual(outcome.code, 2, arguments)
            error = json.loads(outcome.out)["error"]
            self.assertEqual(set(error), {"message", "file", "tensor", "values", "ways_out"})
            self.assertTrue(error["message"] and error["ways_out"], arguments)

    def test_the_example_of_each_help_is_a_command_that_runs(self):
        write_folder(self.dir / "Qwen3-30B-A3B", *qwen3_moe(layers=1, width=64))
        self.assertEqual(self.nibble("quantize", "Qwen3-30B-A3B", "Qwen3-30B-A3B-4bit", "--format", "mxfp4", cwd=self.dir).code, 0)
        for command in ("inspect", "verify", "quantize"):
            example = self.nibble(command, "--help").out.split("Example:")[1].split()
            self.assertEqual(example[:2], ["nibble", command])
            if command == "quantize":
                shutil.rmtree(self.dir / "Qwen3-30B-A3B-4bit")
            self.assertEqual(self.nibble(*example[1:], cwd=self.dir).code, 0, example)

    def test_a_model_without_experts_has_its_dense_mlps_quantized_and_is_told_so(self):
        llama = ROOT / "tests/golden/models/llama"
        for dry in ([], ["--dry-run"]):
            outcome = self.done("quantize", llama, self.dir / "t", "--format", "mxfp4", *dry)
            self.assertEqual({t["role"] for t in outcome.json["tensors"] if t["action"] == "quantized"}, {"dense_mlp"})
            self.assertIn("dense_mlp", outcome.err)
            shutil.rmtree(self.dir / "t", ignore_errors=True)
        chosen = self.done("quantize", llama, self.dir / "t", "--format", "mxfp4", "--include", "attention")
        self.assertNotIn("dense_mlp", chosen.err)

    def test_include_says_what_it_leaves_out(self):
        source = write_folder(self.dir / "s", *qwen3_moe())
        outcome = self.done("quantize", source, self.dir / "t", "--format", "mxfp4", "--include", "attention")
        for word in ("attention", "8 weights", "routed experts (24 weights)", "bf16", "routed_expert"):
            self.assertIn(word, outcome.err)
        self.assertEqual(len(outcome.json["notes"]), 1)
        for option in ("routed_expert", "all_linears"):
            both = self.done("quantize", source, self.dir / "t", "--format", "mxfp4", "--include", "attention", option, "--dry-run")
            self.assertEqual(both.json["notes"], [])

    def test_what_verify_would_refuse_is_said_before(self):
        source = write_folder(self.dir / "s", *qwen3_moe())
        for option, words in ((["--include", "attention", "name:*experts.0.*"], ["2 layers", "3 weights, 9 left", "verify"]),
                              (["--keep", "name:*layers.1.*.down_proj.*"], ["1 layer ", "8 weights, 4 left"]),
                              (["--include", "routed_expert", "router"], ["2 routers", "--keep router"])):
            outcome = self.done("quantize", source, self.dir / "t", "--format", "mxfp4", *option, "--dry-run")
            self.assertEqual(len(outcome.json["notes"]), 1, outcome.json["notes"])
            for word in words:
                self.assertIn(word, outcome.json["notes"][0])

    def test_words_that_select_nothing_are_refused_with_the_reason(self):
        source = write_folder(self.dir / "s", *qwen3_moe())
        for option in (["--include", "norm"], ["--include", "attention", "norm"], ["--include", "name:*layernorm"]):
            self.refused("quantize", source, self.dir / "t", "--format", "mxfp4", *option, says=[option[-1], "vectors and scalars"])
        self.refused("quantize", source, self.dir / "t", "--format", "mxfp4", "--keep", "routed_expert", says=["--keep", "routed_expert"])
        self.done("quantize", source, self.dir / "t", "--format", "mxfp4", "--keep", "norm", "router")

    def test_a_layout_of_one_model_family_says_so_for_another(self):
        source = write_folder(self.dir / "s", *qwen3_moe())
        outcome = self.done("quantize", source, self.dir / "t", "--format", "mxfp4", "--layout", "gpt-oss")
        for word in ("gpt_oss", "qwen3_moe", "vLLM", "transformers", "compressed-tensors"):
            self.assertIn(word, outcome.err)
        own = write_folder(self.dir / "own", *gpt_oss())
        self.assertEqual(self.done("quantize", own, self.dir / "t2", "--format", "mxfp4", "--layout", "gpt-oss").json["notes"], [])

    def test_names_are_chosen_by_classes_of_characters(self):
        source = write_folder(self.dir / "s", *qwen3_moe())
        outcome = self.done("quantize", source, self.dir / "t", "--format", "mxfp4", "--include", "name:*.experts.[0-2].*", "--keep", "name:*.[!13].mlp.*")
        chosen = [t["name"] for t in outcome.json["tensors"] if t["action"] == "quantized"]
        self.assertEqual(sorted(chosen), sorted("model.layers.1.mlp.experts.%d.%s_proj.weight" % (e, p) for e in range(3) for p in ("gate", "up", "down")))

    def test_options_that_no_library_has_are_refused_before_the_target_exists(self):
        source = write_folder(self.dir / "s", *qwen3_moe(layers=1))
        for options in (["int4-g32-asym", "--bit-exact-with", "modelopt"], ["mxfp4", "--bit-exact-with", "modelopt", "--rule", "mx.even"],
                        ["mxfp4", "--bit-exact-with", "compressed-tensors", "--rule", "mse.mx.even"],
                        ["nvfp4", "--bit-exact-with", "modelopt", "--layout", "compressed-tensors"],
                        ["nvfp4", "--bit-exact-with", "compressed-tensors", "--layout", "modelopt"]):
            for dry in ([], ["--dry-run"]):
                outcome = self.nibble("quantize", source, self.dir / "t", "--format", *options, *dry, "--json")
                self.assertEqual(outcome.code, 2, (options, outcome.text))
                self.assertIn("library", outcome.json["error"]["message"])
                self.assertEqual(outcome.json["error"]["values"]["bit_exact_with"], options[2])
                self.assertTrue(outcome.json["error"]["ways_out"])
                self.assertFalse((self.dir / "t").exists())
        # No source is needed to see it; what a library has is no wrong usage.
        self.assertEqual(self.nibble("quantize", self.dir / "none", self.dir / "t", "--format", "mxfp4", "--bit-exact-with", "modelopt", "--rule", "mx.even").code, 2)
        self.done("quantize", source, self.dir / "t", "--format", "mxfp4", "--bit-exact-with", "modelopt", "--rule", "mx.rceil")

    def test_a_standard_output_that_fails_is_an_error_and_no_crash(self):
        source = write_folder(self.dir / "s", *qwen3_moe(layers=1))
        commands = (["inspect", source], ["verify", source], ["quantize", source, self.dir / "t", "--format", "mxfp4"])
        for arguments in (*commands, ["inspect", self.dir / "none"], ["quantize"], ["quantise"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([NIBBLE, *map(str, arguments), "--json"], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertIn(done.returncode, (1, 2), done.stderr)
            self.assertEqual(done.stderr.count("cannot write to standard output"), 1, done.stderr)

    def test_a_nan_is_refused_with_its_place(self):
        tensors, config = qwen3_moe(layers=1)
        name = "model.layers.0.mlp.experts.2.up_proj.weight"
        data = bytearray(tensors[name][2])
        data[2 * (5 * 64 + 9) : 2 * (5 * 64 + 9) + 2] = b"\xc0\x7f"
        tensors[name] = ("BF16", [32, 64], bytes(data))
        source = write_folder(self.dir / "s", tensors, config)
        for format_name in ("int4-g32", "mxfp4", "nvfp4", "mxfp8", "fp8-block", "fp8-channel", "fp8-tensor"):
            self.refused("quantize", source, self.dir / "t", "--format", format_name, says=[name, "row", 5, "column", 9])
            self.assertFalse((self.dir / "t/model.safetensors").exists())
            shutil.rmtree(self.dir / "t", ignore_errors=True)

    def test_rederive_accepts_an_untouched_output_and_names_a_flipped_byte(self):
        tensors, config = qwen3_moe()
        self.quantize(tensors, config, "--format", "mxfp4", "--keep", "name:model.layers.0.*", "--shard-size", "60kB")
        source, target = self.dir / "source", self.dir / "target"
        before = {p.name: p.read_bytes() for p in target.iterdir()}
        again = self.done("verify", target, "--rederive", "--against", source)
        self.assertEqual(self.findings(again, rule="rederive"), [])
        self.assertEqual(again.json["rederived"]["tensors"], len(read_folder(target)))
        self.assertEqual(again.json["rederived"]["differing"], 0)
        self.assertEqual(again.json["rederived"]["bytes"], sum(len(data) for name, data in before.items() if name != "nibble.json"))
        self.assertEqual({p.name: p.read_bytes() for p in target.iterdir()}, before)
        self.assertIn("all bytes equal", self.nibble("verify", target, "--rederive", "--against", source).out)

        name = "model.layers.1.mlp.experts.2.down_proj.weight_packed"
        file = next(f for f in sorted(target.glob("*.safetensors")) if name in read_safetensors(f))
        data = bytearray(file.read_bytes())
        (size,) = struct.unpack("<Q", data[:8])
        at = 8 + size + json.loads(data[8 : 8 + size])[name]["data_offsets"][0] + 21
        data[at] ^= 0x40
        file.write_bytes(data)
        damaged = self.refused("verify", target, "--rederive", "--against", source)
        (finding,) = self.findings(damaged, rule="rederive")
        self.assertEqual((finding["severity"], finding["tensor"], finding["file"]), ("error", name, str(file)))
        self.assertEqual(finding["values"]["first_difference"], "21")
        self.assertEqual(int(finding["values"]["stored"], 16), data[at])
        self.assertEqual(int(finding["values"]["expected"], 16), data[at] ^ 0x40)
        self.assertEqual(damaged.json["rederived"]["differing_bytes"], 1)

        self.assertEqual(self.nibble("verify", target, "--rederive").code, 2)


if __name__ == "__main__":
    unittest.main()
