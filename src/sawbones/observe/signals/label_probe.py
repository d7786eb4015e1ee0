"""The label probe: do the inputs say anything about the labels, and would they under another
pairing?

Two readings, each of at most 600 samples: `batches`, the pairs that reached the model and the loss
while training; and `dataset`, the training loader's data set in its own order, read for at most two
seconds after the run has ended. A nearest-neighbour vote and a ridge fit on half of the samples
predict the other half; the score is compared with the same on permuted labels, for classes also how
far the predicted share of a class goes with the class. Long signals are read by their spectra as
well: where in them something sounds says nothing, and means over stretches are all alike. Token
targets of every position are judged by what one input token says about its target.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.fingerprints import raw_bytes, tensors_in
from sawbones.observe.random_streams import streams_put_back
from sawbones.schema.labels import LabelsTold, Pairing

MAX_SAMPLES = 600
LEAST_PAIRS = 60
MAX_SECONDS = 2.0
NUM_PERMUTATIONS = 30
_FEATURES = 256

Floats = npt.NDArray[np.float64]


class PairLog:
    """Pairs of model input and loss target, as training used them."""

    def __init__(self) -> None:
        self._inputs: list[Any] = []
        self._labels: list[float] = []
        self._tokens: list[tuple[Any, Any]] = []
        self._known: set[bytes] = set()
        self._num_offered = 0

    @property
    def full(self) -> bool:
        return (
            len(self._labels) >= MAX_SAMPLES
            or len(self._tokens) >= 40
            or self._num_offered >= 4 * MAX_SAMPLES
        )

    def add(self, given: Any, target: torch.Tensor) -> None:
        candidates = [
            t
            for _, t in tensors_in(given)
            # what other parts of the model have made of the inputs is no input
            if t.dim() >= 1 and t.shape[0] > 1 and t.device.type == "cpu" and t.grad_fn is None
        ]
        if not candidates or target.device.type != "cpu" or target.dim() == 0:
            return
        value = max(candidates, key=lambda t: t.numel())
        whole = not value.dtype.is_floating_point
        if (
            whole
            and not target.dtype.is_floating_point
            and value.dim() == 2
            and target.numel() == value.numel()
        ):
            self._tokens.append(
                (
                    value.detach().clone().numpy(),
                    target.detach().clone().reshape(value.shape).numpy(),
                )
            )
        elif target.numel() == value.shape[0]:
            labels = target.detach().to(torch.float64).flatten().tolist()
            if len(set(labels)) < 2 or labels == list(range(len(labels))):
                # real against fake, or the index of the matching partner: no label of the sample
                return
            for row, label in zip(value.detach().clone(), labels, strict=True):
                self._num_offered += 1
                # A sample of an earlier epoch is its own nearest neighbour and would answer for
                # itself, whatever its label.
                content = raw_bytes(row).tobytes() if row.numel() and row.dim() else b""
                if not content or content not in self._known:
                    self._known.add(content)
                    self._inputs.append(row)
                    self._labels.append(label)

    def rows(self) -> tuple[list[Any], list[float]]:
        """Inputs and their labels, where each sample has one."""
        return self._inputs, self._labels

    def probe(self) -> LabelsTold | None:
        if len(self._labels) >= LEAST_PAIRS:
            return probe_pairs(self._inputs[:MAX_SAMPLES], self._labels[:MAX_SAMPLES], num_in_row=0)
        if self._tokens:
            return probe_tokens(self._tokens)
        return None


def probe_tokens(batches: list[tuple[Any, Any]]) -> LabelsTold | None:
    """How well one input token predicts a target, at the best of several alignments: some offsets,
    and read backwards.
    """
    alignments: dict[str, Callable[[Any], Any]] = {
        f"offset {k}": partial(np.roll, shift=-k, axis=1) for k in range(-4, 5)
    }
    alignments["backwards"] = np.fliplr
    target = np.concatenate([b.ravel() for _, b in batches])
    keep = target >= 0
    target = target[keep][:20_000]
    if len(target) < 200 or len(np.unique(target)) < 2:
        return None
    scores, best = {}, np.zeros(0)
    for name, align in alignments.items():
        given = np.concatenate([align(a).ravel() for a, _ in batches])[keep][:20_000]
        scores[name] = _token_score(given, target)
        if scores[name] >= max(scores.values()):
            best = given
    rng = np.random.default_rng(0)
    null = np.array([_token_score(best, rng.permutation(target)) for _ in range(8)])
    own = max(scores.values())
    z = float((own - null.mean()) / (null.std() + 2e-3))
    return LabelsTold("tokens", len(target), own, float(null.mean()), float(null.std()), z)


def _token_score(given: Any, target: Any) -> float:
    half = len(target) // 2
    _, a = np.unique(given, return_inverse=True)
    _, b = np.unique(target, return_inverse=True)
    if (a.max() + 1) * (b.max() + 1) > 4_000_000:
        return 0.0
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a[:half], b[:half]), 1.0)
    return float(np.mean(table.argmax(1)[a[half:]] == b[half:]))


def probe_dataset(dataset: Any) -> LabelsTold | None:
    """Reads samples in the data set's order; the random streams it may draw from are put back."""
    try:
        size = min(len(dataset), MAX_SAMPLES)
    except (TypeError, NotImplementedError):
        return None
    inputs, labels = [], []
    ends = time.perf_counter() + MAX_SECONDS
    step = max(1, len(dataset) // size)
    # Neighbours matter for an off-by-one, spread for the classes: half in a row, half spread over
    # the set.
    indices = [*range(size // 2), *range(size // 2, len(dataset), step)][:size]
    with streams_put_back():
        for i in indices:
            pair = split_sample(dataset[i])
            if pair is None:
                return None
            inputs.append(pair[0])
            labels.append(pair[1])
            if time.perf_counter() > ends:
                break
    return probe_pairs(inputs, labels, num_in_row=size // 2) if len(inputs) >= LEAST_PAIRS else None


def split_sample(sample: Any) -> tuple[Any, Any] | None:
    """(input, label) of one sample: the last scalar is the label, the largest tensor before it the
    input.
    """
    found = [t for _, t in tensors_in(sample)]
    scalars = _plain_scalars(sample)
    if scalars is not None and found:
        return max(found, key=lambda t: t.numel()), scalars
    if len(found) >= 2 and found[-1].numel() == 1:
        return max(found[:-1], key=lambda t: t.numel()), float(found[-1])
    return None


def _plain_scalars(sample: Any) -> float | None:
    values = (
        list(sample.values())
        if isinstance(sample, dict)
        else list(sample)
        if isinstance(sample, (tuple, list))
        else []
    )
    last = [
        v
        for v in values
        if isinstance(v, (int, float, np.integer, np.floating)) and not isinstance(v, bool)
    ]
    return float(last[-1]) if last else None


def features(value: Any) -> Floats:
    tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))
    tensor = tensor.detach().cpu()
    if not tensor.dtype.is_floating_point and tensor.dim() == 1 and tensor.numel() > 1:
        counts = np.zeros(
            _FEATURES
        )  # a token sequence: which tokens occur, and which stand first and last
        ids = tensor.numpy().astype(np.int64) % (_FEATURES - 2)
        np.add.at(counts, ids, 1.0)
        return counts
    flat: Floats = tensor.to(torch.float64).flatten().numpy()
    if not np.isfinite(flat).all():
        flat = np.nan_to_num(flat, nan=0.0, posinf=0.0, neginf=0.0)
    if len(flat) <= _FEATURES:
        return flat.copy()  # not the script's own memory
    starts, widths = _stretches(len(flat), _FEATURES)
    means: Floats = np.add.reduceat(flat, starts) / widths
    return means


@lru_cache(maxsize=16)
def _stretches(size: int, number: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where each feature begins in a row of values, and how many values it is the mean of."""
    edges = np.linspace(0, size, number + 1).astype(np.int64)
    return edges[:-1], np.diff(edges)


def probe_best(inputs: list[Any], orders: list[list[float]]) -> tuple[int, LabelsTold | None]:
    """Which of several labels for the same inputs they tell best, and how well."""
    views = _views(inputs)
    if not views:
        return 0, None
    scores = []
    for labels in orders:
        y = np.asarray(labels, np.float64)
        scores.append(_most(_class_score if _are_classes(y) else _value_score, views, y))
    best = int(np.argmax(scores))
    return best, probe_pairs(inputs, orders[best], num_in_row=0)


def _views(inputs: list[Any]) -> list[_Samples]:
    """The inputs as they are, and as spectra where they are long signals."""
    rows = [_standardised([features(x) for x in inputs])]
    spectra = [_spectrum(x) for x in inputs]
    known = [s for s in spectra if s is not None]
    if len(known) == len(inputs):
        rows.append(_standardised(known))
    return [_Samples(x) for x in rows if x.shape[1]]


def _most(score: Callable[[_Samples, Floats], float], views: list[_Samples], y: Floats) -> float:
    return max(score(samples, y) for samples in views)


def _spectrum(value: Any) -> Floats | None:
    """How strong each band of frequencies is in one long signal; None for anything else."""
    row = value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))
    if row.numel() <= _FEATURES or not row.is_floating_point() or row.squeeze().dim() != 1:
        return None
    signal = np.nan_to_num(row.detach().cpu().to(torch.float64).flatten().numpy())
    power = np.abs(np.fft.rfft(signal)) ** 2
    starts, widths = _stretches(len(power), min(_FEATURES, len(power)))
    bands: Floats = np.sqrt(np.add.reduceat(power, starts) / widths)
    return bands


def _standardised(rows: list[Floats]) -> Floats:
    width = min(len(r) for r in rows)
    x = np.stack([r[:width] for r in rows])
    spread = x.std(0)
    kept: Floats = (x - x.mean(0))[:, spread > 1e-12] / spread[spread > 1e-12]
    return kept


def _are_classes(y: Floats) -> bool:
    return len(np.unique(y)) <= max(20, len(y) // 20) and bool(np.all(y == np.round(y)))


def probe_pairs(inputs: list[Any], labels: list[float], num_in_row: int) -> LabelsTold | None:
    views = _views(inputs)
    y = np.asarray(labels, np.float64)
    if not views or len(np.unique(y)) < 2:
        return None
    classes = _are_classes(y)
    score = _class_score if classes else _value_score
    rng = np.random.default_rng(0)
    own = _most(score, views, y)
    others = [rng.permutation(y) for _ in range(NUM_PERMUTATIONS)]
    null = np.array([_most(score, views, labels) for labels in others])
    z = float((own - null.mean()) / (null.std() + 1e-3))
    if classes:
        # Where one class is common, answers hardly change while the odds do.
        odds = np.array([_most(_odds_score, views, labels) for labels in (y, *others)])
        z = max(z, float((odds[0] - odds[1:].mean()) / (odds[1:].std() + 1e-3)))
    shares = np.unique(y, return_counts=True)[1] / len(y)
    return LabelsTold(
        "classes" if classes else "values",
        len(y),
        own,
        float(null.mean()),
        float(null.std() + 1e-9),
        z,
        float(-(shares * np.log(shares)).sum()) if classes else float(y.var()),
        _best_pairing(inputs[:num_in_row], y[:num_in_row], score),
    )


def _best_pairing(
    inputs: list[Any], y: Floats, score: Callable[[_Samples, Floats], float]
) -> Pairing | None:
    """Simple ways to come apart: shifted by a few rows, reversed. Judged on the rows read one after
    another.
    """
    views = _views(inputs) if len(y) >= 40 else []
    if not views:
        return None
    pairings = {f"shifted by {k}": np.roll(y, k) for k in (-2, -1, 1, 2)} | {
        "reversed": y[::-1].copy()
    }
    scores = {name: _most(score, views, labels) for name, labels in pairings.items()}
    name = max(scores, key=lambda n: scores[n])
    return Pairing(name, scores[name], _most(score, views, y))


class _Samples:
    """Inputs, with what all labels that are tried on them share: who is near whom, and how the
    labels of one half make up the ridge fit at the other.
    """

    def __init__(self, x: Floats) -> None:
        self.half = len(x) // 2
        self.neighbours = _neighbours(x)
        known, asked = x[: self.half], x[self.half :]
        gram = known.T @ known + np.eye(x.shape[1]) * max(1.0, 0.1 * len(known))
        self._weights: Floats = asked @ np.linalg.solve(gram, known.T)

    def fitted(self, y: Floats) -> Floats:
        """At the second half, from the labels of the first."""
        result: Floats = self._weights @ y[: self.half]
        return result


def _neighbours(x: Floats, k: int = 7) -> npt.NDArray[np.int64]:
    squares = (x**2).sum(1)
    distance = squares[:, None] + squares[None, :] - 2.0 * x @ x.T
    np.fill_diagonal(distance, np.inf)
    return np.argpartition(distance, min(k, len(x) - 1) - 1, axis=1)[:, :k]


def _class_score(samples: _Samples, y: Floats) -> float:
    ids, codes = np.unique(y, return_inverse=True)
    votes = np.zeros((len(y), len(ids)))
    for column in samples.neighbours.T:
        votes[np.arange(len(y)), codes[column]] += 1.0
    near = float(np.mean(votes.argmax(1) == codes))
    onehot = np.eye(len(ids))[codes] - np.eye(len(ids))[codes].mean(0)
    linear = float(np.mean(samples.fitted(onehot).argmax(1) == codes[samples.half :]))
    return max(near, linear)


def _odds_score(samples: _Samples, y: Floats) -> float:
    """How far the share of a class goes with the class, over the classes."""
    ids = np.unique(y)
    rarer = ids[:1] if len(ids) == 2 else ids
    return float(np.mean([_value_score(samples, (y == c).astype(float)) for c in rarer]))


def _value_score(samples: _Samples, y: Floats) -> float:
    near = _correlation(y[samples.neighbours].mean(1), y)
    half = samples.half
    linear = _correlation(samples.fitted(y - y[:half].mean()), y[half:])
    return max(near, linear)


def _correlation(a: Floats, b: Floats) -> float:
    if a.std() < 1e-12 or b.std() < 1e-12:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])
