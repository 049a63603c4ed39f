#!/usr/bin/env python3
"""The page of `nibble plan --html` in a browser: it is drawn, says what the plan says, and has room on any screen.

    NIBBLE=build/release/nibble tests/browser/test_plan_page.py [--keep FOLDER]

--keep leaves the screenshots in FOLDER, for a look.
"""

import json
import os
import subprocess
import unittest
from pathlib import Path

from page_checks import PageChecks, Words, main

NIBBLE = Path(os.environ.get("NIBBLE", "build/release/nibble")).resolve()
PICTURES = {"weights-by-format", "gpus-by-format", "floor-by-format"}
OF_MODELS = PICTURES | {"memory-by-class", "latency-by-batch", "prefill"}
# Arguments, exit code, pictures.
PLANS = {
    "fits": (["kimi-k2.5", "--gpus", "8", "--concurrency", "64", "--kv", "fp8", "--draft", "2"], 0, OF_MODELS),
    "too_large": (["qwen3-235b-a22b", "--format", "bf16", "--gpu", "h100", "--gpus", "4"], 1, OF_MODELS),
    "total": (["--total", "1e12", "--active", "32e9", "--gpus", "8"], 0, PICTURES),
}


class PlanPage(PageChecks, unittest.TestCase):
    @classmethod
    def make_pages(cls, folder):
        pages, cls.plans = {}, {}
        for name, (arguments, code, _) in PLANS.items():
            page = folder / f"{name}.html"
            made = subprocess.run([NIBBLE, "plan", *arguments, "--json", "--html", page], capture_output=True, timeout=300)
            if made.returncode != code:
                raise RuntimeError(f"{name}: exit code {made.returncode}: {made.stderr.decode()}")
            pages[name], cls.plans[name] = page, json.loads(made.stdout)
        return pages

    def test_the_browser_finds_what_the_plan_says_and_nothing_to_complain_of(self):
        for name, page in self.each():
            document, console = self.browser.dom(page)
            words, plan = Words(document), self.plans[name]
            self.assertEqual(console, [])
            self.assertEqual(words.pictures, PLANS[name][2])
            self.assertIn("It fits" if plan["fits"] else "It does not fit", words.text)
            for row in plan["formats"]:
                self.assertIn(row["title"], words.text)
            for change in plan.get("changes", []):
                self.assertIn(change["change"], words.text)
            if plan.get("layout"):
                self.assertIn(plan["layout"]["name"], words.text)
            self.assertNotIn("nan", words.text.split())
            self.assertNotIn("inf", words.text.split())


if __name__ == "__main__":
    main()
