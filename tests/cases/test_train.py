#!/usr/bin/env python3
"""nibble train from outside: the library that only it opens, the experiment's promised keys, refusals."""
import re
import unittest

from checkpoints import *  # noqa: F403

LIBRARY = pathlib.Path(NIBBLE).parent / "libnibble_train.so"
SHORT = ("train", "--experiment", "table-walk", "--full-steps", 12, "--qat-steps", 4)


class ProgramAndLibrary(CaseTest):
    def needed(self, path):
        shown = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        return re.findall(r"\(NEEDED\).*\[(.*)\]", shown)

    def alone(self):
        """The program in a folder without a library."""
        (self.dir / "bin").mkdir()
        return shutil.copy(NIBBLE, self.dir / "bin" / "nibble")

    def train_with(self, library, program=NIBBLE, **variables):
        environment = {k: v for k, v in os.environ.items() if k != "NIBBLE_TRAIN_LIBRARY"}
        if library is not None:
            environment["NIBBLE_TRAIN_LIBRARY"] = str(library)
        done = subprocess.run([program, *map(str, SHORT), "--seeds", "1", "--json", "--scheme", "mxfp4"],
                              capture_output=True, text=True, timeout=300, env=environment)
        return done.returncode, json.loads(done.stdout)

    def error_with(self, library, program=NIBBLE):
        code, answer = self.train_with(library, program)
        self.assertEqual(code, 1)
        self.assertTrue(answer["error"]["ways_out"])
        return answer["error"]

    def test_the_program_does_not_need_libtorch(self):
        needed = self.needed(NIBBLE)
        self.assertIn("libc.so.6", needed)
        self.assertEqual([name for name in needed if re.search("torch|c10|nibble_train|blas", name)], [])

    def test_a_missing_library_is_said_with_the_places(self):
        error = self.error_with(None, self.alone())
        self.assertIn(str(self.dir / "bin" / "libnibble_train.so"), error["values"]["looked_for"])
        self.assertIn(str(self.dir / "lib" / "libnibble_train.so"), error["values"]["looked_for"])
        missing = self.dir / "not_there.so"
        self.assertEqual(self.error_with(missing)["values"]["looked_for"], str(missing))

    def test_other_files_are_no_training_library(self):
        text = self.dir / "text.so"
        text.write_text("not a shared object\n")
        error = self.error_with(text)
        self.assertEqual(error["file"], str(text))
        self.assertIn("text.so", error["values"]["loader"])

    @unittest.skipUnless(shutil.which("c++"), "needs a compiler")
    def test_another_version_is_refused(self):
        def library(source):
            (self.dir / "other.cc").write_text(source)
            made = self.dir / "other.so"
            subprocess.run(["c++", "-shared", "-fPIC", "-o", made, self.dir / "other.cc"], check=True)
            return made

        self.assertEqual(self.error_with(library("int nothing;"))["values"]["missing_function"], "nibble_train_abi")
        error = self.error_with(library('extern "C" unsigned nibble_train_abi() { return 77; }'))
        self.assertEqual(error["values"]["its_version"], "77")
        self.assertNotEqual(error["values"]["wanted_version"], "77")

    @unittest.skipUnless(LIBRARY.exists(), "built without training")
    def test_it_is_found_beside_and_in_lib(self):
        for folder in ("bin", "lib"):
            program = self.dir / folder / "bin" / "nibble"
            program.parent.mkdir(parents=True)
            shutil.copy(NIBBLE, program)
            place = program.parent if folder == "bin" else program.parent.parent / "lib"
            place.mkdir(exist_ok=True)
            (place / LIBRARY.name).symlink_to(LIBRARY)
            code, answer = self.train_with(None, program)
            self.assertEqual(code, 0, answer)


@unittest.skipUnless(LIBRARY.exists(), "built without training")
class TableWalk(CaseTest):
    def test_the_promised_keys(self):
        outcome = self.done(*SHORT, "--seeds", 2, "--first-seed", 5, "--scheme", "int4-g32:int4.amax7", "--scheme", "nvfp4")
        seeds = outcome.json["seeds"]
        self.assertEqual([seed["seed"] for seed in seeds], [5, 6])
        self.assertGreater(outcome.json["seconds"], 0)
        for seed in seeds:
            for stage in (seed["full"], seed["ptq"], seed["qat"]):
                self.assertLessEqual(0, stage["single_step"])
                self.assertLessEqual(stage["single_step"], 1)
                self.assertLessEqual(stage["mean_run"], 256)
                self.assertLessEqual(stage["whole"], 1)
                self.assertEqual(stage["single_step"] * 4096 % 1, 0)  # over all contexts
            self.assertAlmostEqual(seed["independent_prediction"], seed["ptq"]["single_step"] ** 256)
            self.assertEqual([(s["format"], s["rule"]) for s in seed["schemes"]],
                             [("int4-g32", "int4.amax7"), ("nvfp4", "nv.two_level")])
            self.assertEqual(seed["schemes"][0]["qat"], seed["qat"])
        self.assertNotEqual(seeds[0]["full"], seeds[1]["full"])

    def test_a_seed_gives_the_same_figures(self):
        def figures():
            answer = self.done(*SHORT, "--seeds", 1, "--scheme", "mxfp4:mx.floor", "--threads", 2).json["seeds"][0]
            return answer["full"], answer["ptq"], answer["qat"]

        self.assertEqual(figures(), figures())

    def test_text(self):
        outcome = self.nibble(*SHORT, "--seeds", 1, "--scheme", "mxfp4")
        self.assertEqual(outcome.code, 0, outcome.text)
        for word in ("single step", "full precision", "mxfp4 mx.even", "rounded after training", "trained with rounding"):
            self.assertIn(word, outcome.out)

    def test_refusals(self):
        self.refused(*SHORT, "--scheme", "int3", says=["int3"])
        self.refused(*SHORT, "--scheme", "mxfp4:int4.amax7", says=["mx.even"])
        self.refused(*SHORT, "--scheme", "int4-g128", says=["64 columns", "128"])
        for wrong in (["--experiment", "nothing"], [], ["--experiment", "table-walk", "--seeds", "0"]):
            self.assertEqual(self.nibble("train", *wrong).code, 2)


if __name__ == "__main__":
    unittest.main()
