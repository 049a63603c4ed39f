"""Where the page of `nibble plan --html` goes, and that it never goes half."""

import unittest

from checkpoints import *  # noqa: F403

PLAN = ["plan", "--total", "1e12", "--active", "32e9", "--gpus", "8"]


class PlanPageTest(CaseTest):  # noqa: F405
    def test_the_text_is_printed_as_without_it(self):
        page = self.dir / "plan.html"
        self.assertEqual(self.nibble(*PLAN, "--html", page).out, self.nibble(*PLAN).out)
        self.assertTrue(page.read_text(encoding="utf-8").endswith("</html>\n"))
        self.assertEqual([path.name for path in self.dir.iterdir()], ["plan.html"])

    def test_a_place_that_cannot_be_written_is_an_error_that_names_it(self):
        page = self.dir / "none" / "plan.html"
        self.refused(*PLAN, "--html", page, says=[page])
        self.assertEqual(list(self.dir.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
