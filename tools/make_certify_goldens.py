#!/usr/bin/env python3
"""Make tests/golden/certify/statistics.json: curves of random chain ends by lifelines (KaplanMeierFitter,
AalenJohansenFitter), their bootstrap bands and other percentiles by numpy.

Run with build/oracles/bin/python (tools/oracles/setup.sh).

AalenJohansenFitter moves all event times by random amounts when it finds tied ones. Its answer then depends on the draw, and
an event may fall behind the censorings of its own time: at a limit that many chains reach, the curve is off by as much as
a half (each set's line, when this runs, says by how much). Tied are, to it, times at which several events happen and one of
them is the only one of its kind. So all rows are given to it twice, which changes no share: nothing is moved, and what it
computes for ties is the sum of S(t-) d(t) / n(t), events before censorings. A moved set would be an error here, and every
set is compared with both definitions in fractions. KaplanMeierFitter takes ties as they are, events before censorings.

Bands: lifelines' curves of each resample, whose weights follow bootstrap.h, and numpy.percentile over them.
"""

import argparse
import importlib.metadata
import json
import math
import pathlib
import warnings
from fractions import Fraction

import numpy as np
from lifelines import AalenJohansenFitter, KaplanMeierFitter

TARGET = pathlib.Path(__file__).resolve().parents[1] / "tests/golden/certify/statistics.json"
DIVERGED, ENDED, CENSORED = range(3)
RESAMPLES = 100
TOLERANCE = 1e-12
# name: chains, clusters, last time (None: all times different), shares of the kinds, resamples of the band
SETS = {
    "one": (1, 1, 5, (1, 0, 0), 0),
    "few": (7, 7, None, (0.5, 0.3, 0.2), RESAMPLES),
    "few_tied": (9, 4, 3, (0.4, 0.3, 0.3), RESAMPLES),
    "different_times": (60, 60, None, (0.5, 0.3, 0.2), RESAMPLES),
    "not_censored": (80, 20, 12, (0.6, 0.4, 0), RESAMPLES),
    "no_ends": (50, 50, 40, (0.5, 0, 0.5), RESAMPLES),
    "mostly_censored": (120, 30, 64, (0.1, 0.1, 0.8), RESAMPLES),
    "tied": (200, 50, 16, (0.4, 0.3, 0.3), RESAMPLES),
    "tied_at_the_limit": (150, 150, 100, (0.3, 0.2, 0.5), RESAMPLES),
    "long": (400, 100, 32768, (0.5, 0.3, 0.2), 0),
    "long_different_times": (300, 300, None, (0.4, 0.1, 0.5), 0),
}


def random_bits(seed, index):
    """base/rng.h: SplitMix64's finaliser over seed and counter."""
    mask = 2**64 - 1
    z = (seed * 0xD1342543DE82EF95 + (index + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def resample_weights(clusters, seed, index):
    stream = random_bits(seed, index)
    draws = [int((random_bits(stream, draw) >> 11) * 2.0**-53 * clusters) for draw in range(clusters)]
    return np.bincount(draws, minlength=clusters)


def draw_set(rng, chains, clusters, last, shares):
    kinds = rng.choice(3, chains, p=shares)
    if last is None:
        times = rng.permutation(5 * chains)[:chains] + 1
    elif last == 100:  # a limit that most of the censored chains reach, and others end at
        times = np.where(kinds == CENSORED, last, rng.integers(last // 2, last + 1, chains))
    else:
        times = rng.integers(1, last + 1, chains)
    of_chain = np.concatenate([np.arange(clusters), rng.integers(0, clusters, chains - clusters)])
    _, numbers = np.unique(of_chain, return_inverse=True)
    first = {}  # numbered in order of appearance
    numbers = np.array([first.setdefault(int(c), len(first)) for c in rng.permutation(numbers)])
    return times, kinds, numbers


def aalen_johansen(times, kinds):
    events = np.where(kinds == CENSORED, 0, kinds + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the warning of moved times
        fitter = AalenJohansenFitter(calculate_variance=False).fit(np.repeat(times, 2), np.repeat(events, 2), event_of_interest=1)
    return fitter.cumulative_density_.iloc[:, 0]


def jittered_difference(times, kinds, at):
    """How far off the curve is where lifelines moves tied times; 0 where it does not."""
    events = np.where(kinds == CENSORED, 0, kinds + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitter = AalenJohansenFitter(calculate_variance=False, seed=1).fit(times, events, event_of_interest=1)
    return max(abs(step(fitter.cumulative_density_.iloc[:, 0], t + 0.5, 0) - step(aalen_johansen(times, kinds), t, 0)) for t in at)


def kaplan_meier(times, kinds):
    fitter = KaplanMeierFitter().fit(times, kinds == DIVERGED)
    return fitter.survival_function_.iloc[:, 0], fitter.median_survival_time_


def step(curve, time, before):
    place = np.searchsorted(curve.index.to_numpy(dtype=float), time, side="right")
    return float(curve.iloc[place - 1]) if place else before


def exact(times, kinds, at):
    """Both curves from their definitions, as fractions: (incidence, survival) at each time of `at`."""
    result = {}
    for t in at:
        incidence, both, survival = Fraction(0), Fraction(1), Fraction(1)
        for s in sorted(set(times.tolist())):
            if s > t:
                break
            here = kinds[times == s]
            n, d, e = int((times >= s).sum()), int((here == DIVERGED).sum()), int((here == ENDED).sum())
            incidence += both * Fraction(d, n)
            both *= 1 - Fraction(d + e, n)
            survival *= 1 - Fraction(d, n)
        result[t] = (incidence, survival)
    return result


def points(times, kinds):
    """Where a curve changes, and the last time."""
    return sorted({int(t) for t in times[kinds == DIVERGED]} | {int(times.max())})


def bands(times, kinds, clusters, at, resamples, seed):
    drawn = {"incidence": [], "survival": []}
    for index in range(resamples):
        weights = resample_weights(int(clusters.max()) + 1, seed, index)[clusters]
        rows = np.repeat(times, weights), np.repeat(kinds, weights)
        incidence, (survival, _) = aalen_johansen(*rows), kaplan_meier(*rows)
        drawn["incidence"].append([step(incidence, t, 0.0) for t in at])
        drawn["survival"].append([step(survival, t, 1.0) for t in at])
    return {name: [np.percentile(values, q, axis=0).tolist() for q in (2.5, 97.5)] for name, values in drawn.items()}


def make_set(name, rng, seed):
    chains, clusters, last, shares, resamples = SETS[name]
    times, kinds, numbers = draw_set(rng, chains, clusters, last, shares)
    at = points(times, kinds)
    incidence, (survival, median) = aalen_johansen(times, kinds), kaplan_meier(times, kinds)
    made = {
        "name": name,
        "times": times.tolist(),
        "kinds": kinds.tolist(),
        "clusters": numbers.tolist(),
        "points": at,
        "incidence": [step(incidence, t, 0.0) for t in at],
        "survival": [step(survival, t, 1.0) for t in at],
        "median": None if math.isinf(median) else int(median),
    }
    checked = at[:: max(1, len(at) // 40)] + at[-1:]
    for t, values in exact(times, kinds, checked).items():
        for curve, value in zip(("incidence", "survival"), values):
            assert abs(made[curve][at.index(t)] - float(value)) < TOLERANCE, (name, curve, t)
    if resamples:
        made["band"] = {"seed": seed, "resamples": resamples, **bands(times, kinds, numbers, at, resamples, seed)}
    print(f"{name}: {chains} chains, {len(at)} points, tied times moved at random: off by {jittered_difference(times, kinds, at):.1e}", flush=True)
    return made


def percentiles(rng):
    for count in (1, 2, 3, 39, 40, 41, 42, 400, 1000):
        for what in ("normal", "tied"):
            values = rng.standard_normal(count) if what == "normal" else rng.integers(0, 5, count) / 7
            yield {"values": values.tolist(), "band": np.percentile(values, [2.5, 97.5]).tolist()}


def lines(value):
    """JSON with the members of objects, and those of lists of objects, on lines of their own."""
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"{json.dumps(key)}: {lines(member)}" for key, member in value.items()) + "\n}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(lines(member) for member in value) + "\n]"
    return json.dumps(value)


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    made = {
        "versions": {name: importlib.metadata.version(name) for name in ("lifelines", "numpy", "pandas")},
        "kinds": ["diverged", "ended", "censored"],
        "percentiles": list(percentiles(np.random.default_rng(1))),
        "sets": [make_set(name, np.random.default_rng([2, i]), i) for i, name in enumerate(SETS)],
    }
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(lines(made) + "\n")
    print(TARGET.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
