#!/usr/bin/env python3
"""Lines and tables from the JSON reports that tools/demo.sh collects. Needs nothing but Python.

    demo_report.py line REPORT                  one run: REPORT.quantize.json, .verify.json, .against.json
    demo_report.py table FOLDER NAME…           all runs of these models
    demo_report.py findings VERIFY_JSON COUNT   the first COUNT errors of each rule in a verification
"""

import json
import math
import pathlib
import sys


def load(path):
    return json.loads(pathlib.Path(path).read_text())


def size(count):
    return f"{count / 1e6:,.1f} MB"


def verdict(report):
    count = {level: sum(f["severity"] == level for f in report["findings"]) for level in ("error", "warning")}
    if report["ok"] and not count["warning"]:
        return "ok"
    return ("ok" if report["ok"] else "NOT ok") + f", {count['error']} errors, {count['warning']} warnings"


def summary(report):
    """The figures of one run."""
    made, seen, compared = (load(f"{report}.{kind}.json") for kind in ("quantize", "verify", "against"))
    errors = [tensor["rel_rmse"] for tensor in made["tensors"] if tensor["rel_rmse"] is not None]
    ratios = [row["rel_rmse"] / row["expected_rel_rmse"] for row in compared.get("against", []) if row["expected_rel_rmse"]]
    return {
        "format": made["format"],
        "weights": len(errors),
        "size": size(made["bytes_out"]),
        "of input": f"{100 * made['bytes_out'] / made['bytes_in']:.0f} %",
        "error": f"{math.sqrt(sum(e * e for e in errors) / len(errors)):.4f}" if errors else "none",
        "worst": f"{max(errors):.4f}" if errors else "none",
        "GB/s": f"{made['input_gb_per_s']:.2f}",
        "peak memory": size(made["peak_rss_bytes"]),
        "verify": verdict(seen),
        "against source": verdict(compared) + (f", at most {max(ratios):.2f} of what is expected" if ratios else ""),
    }


def print_table(rows):
    cells = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def table(folder, names):
    rows = []
    for name in names:
        for path in sorted(pathlib.Path(folder).glob(f"{name}-*.quantize.json")):
            rows.append({"model": name, **summary(str(path).removesuffix(".quantize.json"))})
    print_table(rows)


def findings(path, count):
    """Errors by the rule that found them; nibble itself lists only the first of a kind, and says how many there are."""
    report = load(path)
    rules = {}
    for finding in report["findings"]:
        if finding["severity"] == "error":
            rules.setdefault(finding["rule"], []).append(finding)
    for rule, found in rules.items():
        total = max(int(finding["values"].get("total", len(found))) for finding in found)
        for finding in found[: int(count)]:
            print(f"  {rule}: {finding['tensor']}: {finding['message']}")
        if total > int(count):
            print(f"  {rule}: and {total - int(count)} more")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    kind, *rest = sys.argv[1:]
    if kind == "line":
        figures = summary(rest[0])
        print("  " + "; ".join(f"{key} {value}" for key, value in figures.items()))
    elif kind == "table":
        table(rest[0], rest[1:])
    elif kind == "findings":
        findings(*rest)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
