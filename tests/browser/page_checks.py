"""What holds for every page of ours in a browser; test_*_page.py make the pages and say what is on them."""

import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

from render import Browser

TELEPHONE, DESK = 390, 1280


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


class PageChecks:
    """Mixed into a TestCase whose make_pages(folder) gives {name: page}."""

    KEEP = None
    BLUE = 0.002  # at least this share of a page: some bar, or line and marks, in the first colour of charts

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="nibble_browser_")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = Path(cls.temporary.name)
        cls.browser = Browser(cls.folder)
        cls.pages = cls.make_pages(cls.folder)

    def each(self):
        for name, page in self.pages.items():
            with self.subTest(page=name):
                yield name, page

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
                path = (self.KEEP or self.folder) / f"{name}-{width}{'-dark' if dark else ''}.png"
                picture = self.browser.screenshot(page, width, height, path, dark)
                colours = picture.colours(width)
                total = sum(colours.values())
                surface = max(colours, key=colours.get)
                self.assertEqual(sum(surface) < 3 * 128, dark, (path.name, surface))
                # Words, lines and bars: a page that is blank or one block of colour has neither share.
                self.assertLess(colours[surface], 0.97 * total, path.name)
                self.assertGreater(len(colours), 30, path.name)
                blue = sum(n for (r, g, b), n in colours.items() if b > r + 60 and b > g + 20)
                self.assertGreater(blue, self.BLUE * total, path.name)


def main():
    if "--keep" in sys.argv:
        at = sys.argv.index("--keep")
        PageChecks.KEEP = Path(sys.argv[at + 1]).resolve()
        PageChecks.KEEP.mkdir(parents=True, exist_ok=True)
        del sys.argv[at : at + 2]
    unittest.main()
