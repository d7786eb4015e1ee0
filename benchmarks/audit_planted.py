"""Every kind of leak and shift at three strengths, planted in 30 generated data sets, and 30 clean
pairs.

    python benchmarks/audit_planted.py [--sets 30]

Each data set has its own size and skew; kind by kind one of three strengths is planted in it, all
of them above the thresholds that are documented. A row of the table: how often the fault was found,
and what else was said. The clean pairs have to be silent.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "audits"))

from planted import altered, clean_pair, table, texts

from sawbones import audit

Frame = pd.DataFrame
SKEWS = ("normal", "lognormal", "heavy", "uniform", "counts")


def world(number: int, part: int, rate: float = 0.3) -> Frame:
    """Part 0 or 1 of the number-th data set."""
    rows = ((1200, 900), (2000, 1000), (3000, 2500))[(number // 3) % 3][part]
    seed = 100 * number + part
    frame = table(rows, seed, skew=SKEWS[number % 5], rate=rate)
    rng = np.random.default_rng(seed)
    frame["signal"] = rng.normal(size=rows) + 1.2 * frame["y"]
    frame["duration"] = rng.lognormal(3, 0.6, rows)
    frame["weight"] = rng.normal(70, 12, rows)
    frame["region"] = rng.choice(["eu", "us", "br", "in"], rows)
    return frame


def share_of(frame: Frame, share: float) -> int:
    return max(5, round(share * len(frame)))


def with_rows(test: Frame, rows: Frame) -> Frame:
    return pd.concat([test.iloc[len(rows) :], rows], ignore_index=True)


def contamination(a: Frame, b: Frame, share: float) -> tuple[Frame, Frame, dict[str, Any]]:
    return a, with_rows(b, a.sample(share_of(b, share), random_state=0)), {}


def wrong_split(a: Frame, b: Frame, share: float) -> tuple[Frame, Frame, dict[str, Any]]:
    rows = a.sample(len(b), random_state=0, replace=len(b) > len(a))
    return a, with_rows(b, rows.iloc[: round(share * len(b))]), {}


def near_rows(a: Frame, b: Frame, share: float) -> tuple[Frame, Frame, dict[str, Any]]:
    rows = a.sample(share_of(b, share), random_state=0)
    rng = np.random.default_rng(0)
    for name in ("f0", "f1", "gap", "price", "signal", "duration", "weight"):
        rows[name] = rows[name] + 0.001 * a[name].std() * rng.normal(size=len(rows))
    return a, with_rows(b, rows), {}


def near_texts(a: Frame, b: Frame, share: float) -> tuple[Frame, Frame, dict[str, Any]]:
    first, second = texts(len(a) // 4, len(a)), texts(len(b) // 4, len(b) + 1)
    for i in range(share_of(b.iloc[: len(second)], share)):
        second[i] = altered(first[i] + " " + first[i + 1], 0.02, i)
        first[i] = first[i] + " " + first[i + 1]
    return Frame({"body": first}), Frame({"body": second}), {"text": "body"}


def target(a: Frame, b: Frame, noise: float) -> tuple[Frame, Frame, dict[str, Any]]:
    rng = np.random.default_rng(0)
    return *(f.assign(leak=f["y"] + rng.normal(0, noise, len(f))) for f in (a, b)), {}  # type: ignore[return-value]


def target_skewed(a: Frame, b: Frame, noise: float) -> tuple[Frame, Frame, dict[str, Any]]:
    rng = np.random.default_rng(0)
    return *(f.assign(leak=np.exp(3 * (f["y"] + rng.normal(0, noise, len(f))))) for f in (a, b)), {}  # type: ignore[return-value]


def target_category(a: Frame, b: Frame, wrong: float) -> tuple[Frame, Frame, dict[str, Any]]:
    rng = np.random.default_rng(0)

    def state(f: Frame) -> Any:
        return np.where((f["y"] == 1) ^ (rng.random(len(f)) < wrong), "paid", "open")

    return a.assign(state=state(a)), b.assign(state=state(b)), {}


def preprocessing(a: Frame, b: Frame, count: float) -> tuple[Frame, Frame, dict[str, Any]]:
    a, b = a.copy(), b.copy()
    for name in ("signal", "duration", "weight")[: int(count)]:
        both = pd.concat([a, b])[name]
        for f in (a, b):
            f[name] = (f[name] - both.mean()) / both.std(ddof=0)
    return a, b, {}


def group(a: Frame, b: Frame, share: float) -> tuple[Frame, Frame, dict[str, Any]]:
    a, b = a.assign(user=np.arange(len(a)) // 4), b.assign(user=10**6 + np.arange(len(b)) // 4)
    count = share_of(b, share)
    b.loc[: count - 1, "user"] = np.arange(count) // 4
    return a, b, {"group": "user"}


def temporal(a: Frame, b: Frame, share: float) -> tuple[Frame, Frame, dict[str, Any]]:
    rng = np.random.default_rng(0)
    days = rng.uniform(0, 100, len(a)), rng.uniform(100 - 100 * share, 200 - 100 * share, len(b))
    return *(
        f.assign(at=pd.Timestamp("2024-01-01") + pd.to_timedelta(d, unit="D"))
        for f, d in zip((a, b), days, strict=True)
    ), {"time": "at"}  # type: ignore[return-value]


def duplicates(a: Frame, b: Frame, share: float) -> tuple[Frame, Frame, dict[str, Any]]:
    return pd.concat([a, a.sample(share_of(a, share), random_state=0)]), b, {}


def conflicts(a: Frame, b: Frame, share: float) -> tuple[Frame, Frame, dict[str, Any]]:
    rows = a.sample(share_of(a, share), random_state=0)
    return pd.concat([a, rows.assign(y=1 - rows["y"])]), b, {}


def moved(a: Frame, b: Frame, size: float) -> tuple[Frame, Frame, dict[str, Any]]:
    return a, b.assign(weight=b["weight"] + 12 * size), {}


def category(a: Frame, b: Frame, share: float) -> tuple[Frame, Frame, dict[str, Any]]:
    return a, b.assign(region=np.where(np.arange(len(b)) < share * len(b), "eu", b["region"])), {}


def unit(a: Frame, b: Frame, factor: float) -> tuple[Frame, Frame, dict[str, Any]]:
    return a, b.assign(duration=b["duration"] * factor), {}


def missing(a: Frame, b: Frame, share: float) -> tuple[Frame, Frame, dict[str, Any]]:
    return a, b.assign(weight=b["weight"].mask(np.arange(len(b)) < share * len(b))), {}


def new_category(a: Frame, b: Frame, share: float) -> tuple[Frame, Frame, dict[str, Any]]:
    return a, b.assign(region=np.where(np.arange(len(b)) < share * len(b), "jp", b["region"])), {}


def label_shift(a: Frame, b: Frame, rate: float) -> tuple[Frame, Frame, dict[str, Any]]:
    return a, world(int(b.attrs["number"]), 1, rate), {}


def concept(a: Frame, b: Frame, share: float) -> tuple[Frame, Frame, dict[str, Any]]:
    chosen = np.arange(len(b)) < share * len(b)
    y = b["y"].to_numpy().copy()
    y[chosen] = np.random.default_rng(0).permutation(y[chosen])
    a, b = (f.assign(said=(f["signal"] > 0.9).astype(int)) for f in (a, b))
    return a, b.assign(y=y), {"prediction": "said"}


def segment(a: Frame, b: Frame, wrong: float) -> tuple[Frame, Frame, dict[str, Any]]:
    rng = np.random.default_rng(0)
    a = a.assign(said=np.where(rng.random(len(a)) < 0.05, 1 - a["y"], a["y"]))
    rate = np.where(b["region"] == "br", wrong, 0.05)
    return (
        a,
        b.assign(said=np.where(rng.random(len(b)) < rate, 1 - b["y"], b["y"])),
        {"prediction": "said", "segment": ["region"]},
    )


# kind -> (audit, plants it, strengths, what they are, fault)
KINDS: dict[str, tuple[str, Callable[..., Any], tuple[float, float, float], str, str]] = {
    "exact copies": (
        "leaks",
        contamination,
        (0.01, 0.05, 0.3),
        "of the test rows",
        "evaluation.leak-contamination",
    ),
    "noised copies of rows": (
        "leaks",
        near_rows,
        (0.01, 0.05, 0.3),
        "of the test rows",
        "evaluation.leak-contamination",
    ),
    "altered copies of texts": (
        "leaks",
        near_texts,
        (0.02, 0.05, 0.3),
        "of the test texts",
        "evaluation.leak-contamination",
    ),
    "test set is training set": (
        "leaks",
        wrong_split,
        (0.92, 0.96, 1.0),
        "of the test rows",
        "evaluation.wrong-split",
    ),
    "feature from the label": (
        "leaks",
        target,
        (0.38, 0.3, 0.1),
        "noise (AUC 0.968, 0.991, 1)",
        "evaluation.leak-target",
    ),
    "the same, skewed": (
        "leaks",
        target_skewed,
        (0.38, 0.3, 0.1),
        "noise (AUC 0.968, 0.991, 1)",
        "evaluation.leak-target",
    ),
    "category from the label": (
        "leaks",
        target_category,
        (0.03, 0.01, 0.0),
        "wrong",
        "evaluation.leak-target",
    ),
    "standardised together": (
        "leaks",
        preprocessing,
        (1, 2, 3),
        "columns",
        "evaluation.leak-preprocessing",
    ),
    "shared groups": (
        "leaks",
        group,
        (0.01, 0.1, 0.5),
        "of the test rows",
        "evaluation.leak-group",
    ),
    "training data from later": (
        "leaks",
        temporal,
        (0.05, 0.3, 1.0),
        "overlap",
        "evaluation.leak-temporal",
    ),
    "doubled rows": (
        "leaks",
        duplicates,
        (0.02, 0.05, 0.3),
        "of the rows",
        "data.degenerate-samples",
    ),
    "contradicting labels": (
        "leaks",
        conflicts,
        (0.02, 0.05, 0.3),
        "of the rows",
        "data.labels-misaligned",
    ),
    "a number moves": ("shift", moved, (0.5, 0.8, 1.5), "deviations", "deployment.covariate-shift"),
    "a category grows": (
        "shift",
        category,
        (0.3, 0.4, 0.7),
        "of the rows",
        "deployment.covariate-shift",
    ),
    "another unit": ("shift", unit, (60.0, 1000.0, 1 / 3600), "times", "deployment.pipeline-drift"),
    "values go missing": (
        "shift",
        missing,
        (0.1, 0.2, 0.5),
        "of the rows",
        "deployment.pipeline-drift",
    ),
    "a new category": (
        "shift",
        new_category,
        (0.03, 0.1, 0.3),
        "of the rows",
        "deployment.pipeline-drift",
    ),
    "class rates move": (
        "shift",
        label_shift,
        (0.42, 0.5, 0.7),
        "instead of 0.3",
        "deployment.label-shift",
    ),
    "labels no longer follow": (
        "shift",
        concept,
        (0.7, 0.85, 1.0),
        "of the labels shuffled",
        "deployment.concept-drift",
    ),
    "a bad segment": ("shift", segment, (0.3, 0.45, 0.7), "wrong there", "deployment.subgroup"),
}


def planted(kind: str, number: int) -> tuple[bool, list[str]]:
    """(found, what else was said) for one kind in one data set."""
    command, plant, strengths, _, fault = KINDS[kind]
    first, second = world(number, 0), world(number, 1)
    second.attrs["number"] = number
    a, b, options = plant(first, second, strengths[number % 3])
    label = {"label": "y"} if "y" in a.columns else {}
    report = (
        audit.leaks(a, b, **label, **options, model=False)
        if command == "leaks"
        else audit.shift(a, b, **label, **options)
    )
    said = {f.fault for f in report.findings}
    broken = [
        f"failed: {blind.why}" for blind in report.could_not_look if "itself failed" in blind.why
    ]
    return fault in said, sorted(said - {fault}) + broken


def clean(number: int) -> list[str]:
    a, b, options = clean_pair(number)
    found = [
        *audit.leaks(a, b, **options, model=number % 6 == 0).findings,
        *audit.shift(a, b, **options).findings,
    ]
    return [f"{f.fault}: {f.title}" for f in found]


if __name__ == "__main__":
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--sets", type=int, default=30, help="data sets, and clean pairs")
    given = p.parse_args()
    began = time.process_time()
    print(
        f"| planted | strengths | found of {given.sets} | also said |\n|---|---|---|---|",
        flush=True,
    )
    missed = 0
    for name, (_, _, levels, what, _) in KINDS.items():
        answers = [planted(name, number) for number in range(given.sets)]
        hits = sum(found for found, _ in answers)
        missed += given.sets - hits
        others = Counter(text for _, more in answers for text in more)
        also = "; ".join(f"{text} ({n})" for text, n in others.most_common()) or "-"
        lost = [i for i, (found, _) in enumerate(answers) if not found]
        shown = f"{hits}{f' (not in {lost})' if lost else ''}"
        print(
            f"| {name} | {', '.join(f'{s:.4g}' for s in levels)} {what} | {shown} | {also} |",
            flush=True,
        )
    false = [text for number in range(given.sets) for text in clean(number)]
    print(
        f"\nMissed: {missed}. Findings on {given.sets} clean pairs: {len(false)}. "
        f"{time.process_time() - began:.0f} CPU s."
    )
    print("\n".join(false))
