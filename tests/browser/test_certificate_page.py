#!/usr/bin/env python3
"""The page of `nibble certify --html` in a browser: it is drawn, says what the certificate says, and has room on any screen.

    NIBBLE=build/release/nibble tests/browser/test_certificate_page.py [--keep FOLDER]
"""

import json
import os
import subprocess
import unittest
from pathlib import Path

from page_checks import PageChecks, Words, main

NIBBLE = Path(os.environ.get("NIBBLE", "build/release/nibble")).resolve()
MODEL = Path(__file__).resolve().parents[1] / "golden" / "models" / "qwen3_moe"
FORMATS = ("int4-g32", "mxfp4", "nvfp4")
CURVES = {"incidence", "survival", "hazard"}
SOURCES = {"prompts": ["--prompts", "prompts.jsonl"], "task": ["--task", "state-machine:symbols=32,tables=2", "--task-chains", "8"]}


def run(*arguments):
    made = subprocess.run([NIBBLE, *map(str, arguments)], capture_output=True, timeout=300)
    if made.returncode:
        raise RuntimeError(f"{arguments}: exit code {made.returncode}: {made.stderr.decode()}")
    return made.stdout


class CertificatePage(PageChecks, unittest.TestCase):
    BLUE = 0.0002  # lines, no bars

    @classmethod
    def make_pages(cls, folder):
        for format in FORMATS:
            run("quantize", MODEL, folder / format, "--format", format, "--include", "all_linears", "--quiet")
        (folder / "prompts.jsonl").write_text("".join(json.dumps({"tokens": [i, 2 * i + 1, 7]}) + "\n" for i in range(16)))
        pages, cls.certificates = {}, {}
        for name, (option, value, *more) in SOURCES.items():
            pages[name] = folder / f"{name}.html"
            value = folder / value if option == "--prompts" else value
            candidates = [folder / format for format in FORMATS]
            cls.certificates[name] = json.loads(run("certify", MODEL, *candidates, option, value, *more, "--length", 48,
                                                    "--attribute", "--html", pages[name], "--json", "--quiet"))
        return pages

    def test_the_browser_finds_what_the_certificate_says_and_nothing_to_complain_of(self):
        for name, page in self.each():
            document, console = self.browser.dom(page)
            words = Words(document)
            self.assertEqual(console, [])
            rows = self.certificates[name]["candidates"]
            healed = {f"attribution-{i}" for i, row in enumerate(rows) if any(group["healed"] for group in row["attribution"])}
            self.assertEqual(words.pictures, CURVES | healed)
            for row in rows:
                self.assertIn(row["name"], words.text)
                self.assertIn(f"{100 * row['flip_rate']:.2f} %", words.text)
            self.assertEqual("Checkable chains" in words.text, name == "task")
            self.assertNotIn("nan", words.text.split())
            self.assertNotIn("inf", words.text.split())


if __name__ == "__main__":
    main()
