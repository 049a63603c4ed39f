"""The programs under tools/: what is no option of theirs is answered with their usage and touches nothing."""

import sys
import unittest

from checkpoints import *  # noqa: F403

MAKE_MOE = os.environ.get("MAKE_MOE", str(ROOT / "build" / "release" / "make_moe"))


class Tools(CaseTest):
    def run_in_folder(self, *command):
        return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, cwd=self.dir)

    def test_make_moe_tells_its_usage(self):
        for arguments, code in ((["--help"], 0), (["-h"], 0), ([], 2), (["--nonsense"], 2), ([""], 2), (["f", "0"], 2), (["f", "-1"], 2),
                                (["f", "1x"], 2), (["f", "99999999999999999999"], 2), (["f", "1", "2", "3", "4", "5", "6"], 2)):
            done = self.run_in_folder(MAKE_MOE, *arguments)
            self.assertEqual(done.returncode, code, arguments)
            self.assertIn("usage: make_moe FOLDER", done.stdout if code == 0 else done.stderr)
            self.assertEqual(list(self.dir.iterdir()), [], arguments)
        (self.dir / "file").write_text("x")
        done = self.run_in_folder(MAKE_MOE, "file/f", 1, 1, 32, 32)
        self.assertEqual((done.returncode, "file/f" in done.stderr), (1, True), done.stderr)
        self.assertEqual(self.run_in_folder(MAKE_MOE, "f", 1, 2, 32, 32).returncode, 0)
        self.assertTrue(self.done("verify", self.dir / "f").json["ok"])

    def test_scripts_tell_their_usage(self):
        for script in ("break_checkpoint.py", "demo_report.py", "fetch_smollm2.py"):
            for argument in ("--help", "--nonsense"):
                done = self.run_in_folder(sys.executable, ROOT / "tools" / script, argument)
                self.assertTrue(done.stdout + done.stderr, script)
                self.assertEqual(list(self.dir.iterdir()), [], script)
        done = self.run_in_folder(ROOT / "tools/run_benchmarks.sh", "--help")
        self.assertEqual((done.returncode, "BUILD" in done.stderr), (0, True))


if __name__ == "__main__":
    unittest.main()
