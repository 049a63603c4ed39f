#!/usr/bin/env python3
"""The page of `nibble plan --html` in a browser: it is drawn, says what the plan says, and has room on any screen.

    NIBBLE=build/release/nibble tests/browser/test_plan_page.py [--keep FOLDER]

--keep leaves the screenshots in FOLDER, for a look.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

from render import Browser

NIBBLE = Path(os.environ.get("NIBBLE", "build/release/nibble")).resolve()
KEEP = None
TELEPHONE, DESK = 390, 1280
PICTURES = {"weights-by-format", "gpus-by-format", "floor-by-format"}
OF_MODELS = PICTURES | {"memory-by-class", "latency-by-batch", "prefill"}
# Arguments, exit code, pictures.
PLANS = {
    "fits": (["kimi-k2.5", "--gpus", "8", "--concurrency", "64", "--kv", "fp8", "--draft", "2"], 0, OF_MODELS),
    "too_large": (["qwen3-235b-a22b", "--format", "bf16", "--gpu", "h100", "--gpus", "4"], 1, OF_MODELS),
    "total": (["--total", "1e12", "--active", "32e9", "--gpus", "8"], 0, PICTURES),
}


class Words(HTMLParser):
    """Visible text and pictures of a document."""

    def __init__(self, document):
        super().__init__()
        self.pictures, self.text, self.inside = set(), "", []
        self.feed(document)

    def handle_starttag(self, tag, attributes):
        if tag == "svg":
            self.pictures.add(dict(attributes)["id"])
        if tag in ("style", "script"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if not self.inside:
            self.text += data + " "


class PlanPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="nibble_browser_")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = Path(cls.temporary.name)
        cls.browser = Browser(cls.folder)
        cls.pages, cls.plans = {}, {}
        for name, (arguments, code, _) in PLANS.items():
            page = cls.folder / f"{name}.html"
            made = subprocess.run([NIBBLE, "plan", *arguments, "--json", "--html", page], capture_output=True, timeout=300)
            if made.returncode != code:
                raise RuntimeError(f"{name}: exit code {made.returncode}: {made.stderr.decode()}")
            cls.pages[name], cls.plans[name] = page, json.loads(made.stdout)

    def each(self):
        for name, page in self.pages.items():
            with self.subTest(plan=name):
                yield name, page

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

    def test_the_file_is_well_formed_and_alone(self):
        for _, page in self.each():
            text = page.read_text(encoding="utf-8")
            ElementTree.fromstring(text)
            self.assertIsNone(re.search(r"https?:|//|<script|\s(?:src|href)=|@import|url\((?!#)", text))

    def test_nothing_stands_out_on_a_telephone_or_a_desk(self):
        for _, page in self.each():
            for width in (TELEPHONE, DESK):
                seen, console = self.browser.measure(page, width)
                self.assertEqual(console, [])
                self.assertEqual((seen["overflow"], seen["wide"]), (0, []), width)
                self.assertEqual((seen["outside"], seen["hidden"]), ([], []), width)
                self.assertGreaterEqual(seen["letters"], 10, width)  # CSS pixels of the smallest word in a picture

    def test_it_is_painted_in_light_and_dark(self):
        for name, page in self.each():
            for width, dark in ((TELEPHONE, False), (DESK, False), (TELEPHONE, True)):
                height = self.browser.measure(page, width)[0]["height"]  # charts may follow a screen of words
                path = (KEEP or self.folder) / f"{name}-{width}{'-dark' if dark else ''}.png"
                picture = self.browser.screenshot(page, width, height, path, dark)
                colours = picture.colours(width)
                total = sum(colours.values())
                surface = max(colours, key=colours.get)
                self.assertEqual(sum(surface) < 3 * 128, dark, (path.name, surface))
                # Words, lines and bars: a page that is blank or one block of colour has neither share.
                self.assertLess(colours[surface], 0.97 * total, path.name)
                self.assertGreater(len(colours), 30, path.name)
                blue = sum(n for (r, g, b), n in colours.items() if b > r + 60 and b > g + 20)
                self.assertGreater(blue, 0.002 * total, path.name)  # weights of some bar


if __name__ == "__main__":
    if "--keep" in sys.argv:
        at = sys.argv.index("--keep")
        KEEP = Path(sys.argv[at + 1]).resolve()
        KEEP.mkdir(parents=True, exist_ok=True)
        del sys.argv[at : at + 2]
    unittest.main()
