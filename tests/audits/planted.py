"""Generated data sets with known leaks and shifts, and clean ones of many sizes and skews."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

SIZES = (60, 200, 500, 1000, 3000)


def table(
    rows: int, seed: int, *, skew: str = "normal", rate: float = 0.3, classes: int = 2
) -> pd.DataFrame:
    """Numbers, categories, missing values and a label that three features tell something about."""
    rng = np.random.default_rng(seed)
    y = (rng.random(rows) < rate).astype(int) if classes == 2 else rng.integers(0, classes, rows)
    told = (
        0.4 * y if skew != "counts" else 0.0 * y
    )  # between whole counts 0.4 would give the label away
    draws = {
        "normal": lambda: rng.normal(size=rows),
        "lognormal": lambda: rng.lognormal(0, 1.5, rows),
        "heavy": lambda: rng.standard_t(2, rows),
        "counts": lambda: rng.poisson(3, rows).astype(float),
        "uniform": lambda: rng.random(rows),
    }
    frame = {f"f{i}": draws[skew]() + told * (i < 3) for i in range(6)}
    frame["gap"] = np.where(rng.random(rows) < 0.2, np.nan, rng.normal(size=rows))
    frame["price"] = np.round(rng.gamma(2.0, 30.0, rows), 2)
    frame["plan"] = rng.choice(["free", "basic", "pro"], rows, p=[0.7, 0.25, 0.05])
    frame["city"] = np.array([f"city {i}" for i in rng.zipf(1.6, rows) % 40])
    frame["visits"] = rng.integers(0, 12, rows)
    frame["y"] = y
    return pd.DataFrame(frame)


def clean_pair(number: int) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """The number-th clean pair: two independent draws of one source, of unequal sizes."""
    skews = ("normal", "lognormal", "heavy", "counts", "uniform")
    rows = SIZES[number % len(SIZES)]
    skew, rate = skews[(number // 5) % 5], (0.3, 0.05, 0.5)[number % 3]
    train = table(rows, 1000 + number, skew=skew, rate=rate)
    test = table(max(40, rows // (1 + number % 3)), 5000 + number, skew=skew, rate=rate)
    return train, test, {"label": "y"}


def texts(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    words = np.array([f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "lmnrst"])
    return [" ".join(rng.choice(words, rng.integers(20, 60))) for _ in range(count)]


def altered(text: str, share: float, seed: int) -> str:
    rng = np.random.default_rng(seed)
    words = text.split()
    for place in rng.choice(len(words), max(1, int(share * len(words))), replace=False):
        words[place] = "changed"
    return " ".join(words)
