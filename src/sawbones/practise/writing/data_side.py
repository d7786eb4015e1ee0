"""To be written by hand: a scaler fitted on the right side of the split, and a collate function."""

from __future__ import annotations

from typing import Any

import numpy as np

from sawbones.oracles.arguments import Array
from sawbones.practise.writing.assignments import Assignment, Case, Terms

_SCALER = '''"""Standardise columns, fitted on the right side of the split.

train is (N, D) and test (M, D). Give back a dict with "mean" and "spread" (D,) that were used, and with
"train" and "test", both scaled by them. The spread is the standard deviation that divides by the
number of rows; a column that does not vary has spread 1. Do not change what you are given. NumPy only.
"""

import numpy as np


def standardize(train, test):
    raise NotImplementedError
'''


def _scaler_case(rng: np.random.Generator, number: int) -> Case:
    rows, others, columns = (int(n) for n in rng.integers(3, 8, 3))
    train = rng.normal(size=(rows, columns)) * 5 + 3
    test = rng.normal(size=(others, columns)) * 20 - 7
    about = f"{rows} rows to train on, {others} to test, from elsewhere"
    if number in (1, 4):
        train[:, 0] = 2.0
        about += "; the first column is constant in training"
    return Case(about, {"train": train, "test": test})


def _scaled(train: Array, test: Array, fitted: Array, ddof: int = 0) -> Terms:
    mean, spread = fitted.mean(axis=0), fitted.std(axis=0, ddof=ddof)
    spread = np.where(spread > 0, spread, 1.0)
    return {
        "mean": mean,
        "spread": spread,
        "train": (train - mean) / spread,
        "test": (test - mean) / spread,
    }


def _scaler(train: Array, test: Array) -> Terms:
    return _scaled(train, test, train)


def _scaler_all(train: Array, test: Array) -> Terms:
    return _scaled(train, test, np.concatenate([train, test]))


def _scaler_each(train: Array, test: Array) -> Terms:
    return {**_scaled(train, test, train), "test": _scaled(test, test, test)["test"]}


def _scaler_unbiased(train: Array, test: Array) -> Terms:
    return _scaled(train, test, train, ddof=1)


def _scaler_constant(train: Array, test: Array) -> Terms:
    mean, spread = train.mean(axis=0), train.std(axis=0)
    with np.errstate(all="ignore"):
        scaled = [(part - mean) / spread for part in (train, test)]
    return {"mean": mean, "spread": spread, "train": scaled[0], "test": scaled[1]}


_COLLATE = '''"""A collate function for next-token prediction.

samples is a list of lists of token ids, each of at least two. The model reads a sample without its last
token and has to say, at each place, the token that follows. Give back a dict with
"inputs"  (B, T) int64, padded on the right with pad_id; T is no longer than the batch needs
"mask"    (B, T) bool, True where there is a token: by lengths, since pad_id may also occur as a token
"labels"  (B, T) int64, -100 where there is no token
Do not change what you are given. NumPy only.
"""

import numpy as np


def collate(samples, pad_id):
    raise NotImplementedError
'''


def _collate_case(rng: np.random.Generator, number: int) -> Case:
    pad = int(rng.integers(0, 3))
    lengths = rng.integers(2, 8, int(rng.integers(2, 5)))
    lengths[:2] = (3, 6)
    samples = [rng.integers(3, 50, int(n)).tolist() for n in lengths]
    about = f"lengths {lengths.tolist()}, pad_id {pad}"
    if number in (1, 3):
        samples[1][-1] = samples[0][1] = pad
        about += "; pad_id also occurs as a token"
    return Case(about, {"samples": samples, "pad_id": pad})


def _filled(samples: list[list[int]], pad_id: int, length: int) -> dict[str, Any]:
    shape = (len(samples), length)
    inputs = np.full(shape, pad_id, np.int64)
    mask, labels = np.zeros(shape, bool), np.full(shape, -100, np.int64)
    for row, sample in enumerate(samples):
        used = len(sample) - 1
        inputs[row, :used] = sample[:-1]
        labels[row, :used] = sample[1:]
        mask[row, :used] = True
    return {"inputs": inputs, "mask": mask, "labels": labels}


def _collate(samples: list[list[int]], pad_id: int) -> Terms:
    return _filled(samples, pad_id, max(map(len, samples)) - 1)


def _collate_unshifted(samples: list[list[int]], pad_id: int) -> Terms:
    right = _filled(samples, pad_id, max(map(len, samples)) - 1)
    return right | {"labels": np.where(right["mask"], right["inputs"], -100)}


def _collate_by_id(samples: list[list[int]], pad_id: int) -> Terms:
    right = _filled(samples, pad_id, max(map(len, samples)) - 1)
    labels = np.where(right["labels"] == pad_id, -100, right["labels"])
    return right | {"mask": right["inputs"] != pad_id, "labels": labels}


def _collate_learns_padding(samples: list[list[int]], pad_id: int) -> Terms:
    right = _filled(samples, pad_id, max(map(len, samples)) - 1)
    return right | {"labels": np.where(right["mask"], right["labels"], pad_id)}


def _collate_left(samples: list[list[int]], pad_id: int) -> Terms:
    right = _filled(samples, pad_id, max(map(len, samples)) - 1)
    moved = {}
    for name, value in right.items():
        rows = [np.roll(row, len(row) - len(s) + 1) for row, s in zip(value, samples, strict=True)]
        moved[name] = np.stack(rows)
    return moved


ASSIGNMENTS = (
    Assignment(
        "scaler",
        6,
        "standardize",
        _SCALER,
        ("mean", "spread", "train", "test"),
        _scaler_case,
        _scaler,
        {
            "fitted on all rows: the test rows leak into training": _scaler_all,
            "the test rows are scaled by their own mean and spread": _scaler_each,
            "the standard deviation divides by the number of rows less one": _scaler_unbiased,
            "a constant column divides by 0": _scaler_constant,
        },
        page="evaluation.leak-preprocessing",
    ),
    Assignment(
        "collate",
        12,
        "collate",
        _COLLATE,
        ("inputs", "mask", "labels"),
        _collate_case,
        _collate,
        {
            "labels are not moved: each place is asked for its own token": _collate_unshifted,
            "padding is known by its id, so that real tokens of that id are lost": _collate_by_id,
            "labels hold pad_id where there is no token, so that padding is learned": (
                _collate_learns_padding
            ),
            "padded on the left": _collate_left,
        },
        page="loss.pad-not-ignored",
    ),
)
