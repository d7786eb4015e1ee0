"""Scalers, imputers and vocabularies from a file, as the numbers or words they hold."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sawbones.audits.case import Case
from sawbones.audits.engine.split import Split
from sawbones.audits.options import AuditError

WORD = re.compile(r"(?u)\b\w\w+\b")
# attribute of a scikit-learn object -> what it is the fitted value of
ATTRIBUTES = {
    "mean_": "mean",
    "scale_": "spread",
    "data_min_": "minimum",
    "data_max_": "maximum",
    "statistics_": "mean",
}


@dataclass(frozen=True, slots=True)
class Fitted:
    what: str  # mean, spread, minimum or maximum
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FittedObjects:
    statistics: tuple[Fitted, ...] = ()
    vocabulary: set[str] = field(default_factory=set)


def fitted_objects(path: str, numbers: list[str]) -> FittedObjects:
    """Reads .json ({"mean": {column: value}}, {"vocabulary": [...]}, or a list of words), .txt (a
    word on each line) or a pickle.

    A pickle can run code when it is opened. It is opened only because the user named it.
    """
    file = Path(path)
    if not file.is_file():
        raise AuditError(f"--fitted {path}: no such file")
    try:
        if file.suffix == ".txt":
            return FittedObjects(
                vocabulary={
                    line.strip()
                    for line in file.read_text(encoding="utf-8").splitlines()
                    if line.strip()
                }
            )
        loaded = (
            json.loads(file.read_text(encoding="utf-8"))
            if file.suffix == ".json"
            else _unpickled(file)
        )
    except Exception as error:
        raise AuditError(
            f"--fitted {path} cannot be read: {type(error).__name__}: {error}. Taken: "
            ".json, .txt, or a pickle"
        ) from error
    found = (
        _from_json(loaded) if isinstance(loaded, (dict, list)) else _from_object(loaded, numbers)
    )
    if not found.statistics and not found.vocabulary:
        raise AuditError(
            f"--fitted {path} holds no mean, spread, minimum, maximum or vocabulary that "
            "could be compared"
        )
    return found


def _unpickled(file: Path) -> Any:
    try:
        import joblib  # type: ignore[import-untyped]

        return joblib.load(file)
    except ImportError:
        with file.open("rb") as stream:
            return pickle.load(stream)


def _from_json(loaded: Any) -> FittedObjects:
    if isinstance(loaded, list):
        return FittedObjects(vocabulary={str(word) for word in loaded})
    names = {
        "mean": "mean",
        "std": "spread",
        "scale": "spread",
        "spread": "spread",
        "min": "minimum",
        "max": "maximum",
    }
    statistics = [
        Fitted(what, {str(k): float(v) for k, v in loaded[key].items()})
        for key, what in names.items()
        if isinstance(loaded.get(key), dict)
    ]
    words = loaded.get("vocabulary") or (loaded.get("model") or {}).get("vocab") or []
    if not statistics and not words and all(isinstance(v, int) for v in loaded.values()):
        words = loaded
    return FittedObjects(tuple(statistics), {str(word) for word in words})


def _from_object(fitted: Any, numbers: list[str]) -> FittedObjects:
    steps = [step for _, step in fitted.steps] if hasattr(fitted, "steps") else [fitted]
    statistics, words = [], set()
    for step in steps:
        columns = [str(n) for n in getattr(step, "feature_names_in_", numbers)]
        for attribute, what in ATTRIBUTES.items():
            if attribute == "scale_" and not hasattr(step, "mean_"):
                continue  # the scale of a range is not a spread
            if attribute == "statistics_" and getattr(step, "strategy", "mean") != "mean":
                continue
            values = getattr(step, attribute, None)
            if values is not None and len(np.atleast_1d(values)) == len(columns):
                statistics.append(
                    Fitted(what, dict(zip(columns, map(float, np.atleast_1d(values)), strict=True)))
                )
        words |= {str(word) for word in getattr(step, "vocabulary_", ())}
    return FittedObjects(tuple(statistics), words)


def vocabulary_in(case: Case, split: Split, text: str, words: set[str]) -> set[str]:
    """Which of the words occur in the split."""
    found: set[str] = set()
    for batch in case.session.batches(
        split.table.select(t=split.table[text].cast("string")), 10_000
    ):
        for value in batch.column(0).to_pylist():
            if value:
                found.update(WORD.findall(value.lower()), WORD.findall(value), value.split())
    return found & words
