"""Whether label maps (masks of segmentation) lie on the pictures they come with, or would fit
better mirrored or turned.

The values of a pixel and of its surroundings tell the mask at that place by a least-squares fit
over many samples. A picture that was flipped without its mask is fitted best by the flipped mask; a
picture whose colours alone were changed never is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.fingerprints import tensors_in
from sawbones.schema.labels import MapFit

MIN_SAMPLES = 24
MAX_SIDE = 48
ROUNDS = 4
CLEAR = 0.15  # of correlation between the fit and the mask

Floats = npt.NDArray[np.float64]
_WAYS: dict[str, Callable[[Floats], Floats]] = {
    "as it is": lambda m: m,
    "mirrored left to right": np.fliplr,
    "mirrored top to bottom": np.flipud,
    "turned by half": lambda m: m[::-1, ::-1],
    "turned by a quarter": np.rot90,
    "turned back by a quarter": lambda m: np.rot90(m, 3),
    "transposed": lambda m: m.T,
    "transposed the other way": lambda m: m[::-1, ::-1].T,
}


def picture_and_map(sample: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The picture (channels, height, width) of a sample and the map of labels that is as high and
    as wide.
    """
    found = [t for _, t in tensors_in(sample)]
    if len(found) != 2 or found[0].dim() not in (2, 3) or not found[0].is_floating_point():
        return None
    picture = found[0] if found[0].dim() == 3 else found[0][None]
    label = found[1][0] if found[1].dim() == 3 and found[1].shape[0] == 1 else found[1]
    if (
        label.dim() != 2
        or picture.shape[1:] != label.shape
        or min(label.shape) < 8
        or picture.shape[0] > 8
    ):
        return None
    return picture.detach(), label.detach()


def probe_maps(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> MapFit | None:
    """How many pictures are told clearly better by their mask in another way, and how well masks
    fit in either.
    """
    if len(pairs) < MIN_SAMPLES or len({(tuple(p.shape), tuple(m.shape)) for p, m in pairs}) != 1:
        return None
    height, width = pairs[0][1].shape
    step = max(1, -(-max(height, width) // MAX_SIDE))
    pictures = [_features(p.double().numpy())[:, ::step, ::step] for p, _ in pairs]
    values, counts = np.unique(np.stack([m.numpy() for _, m in pairs]), return_counts=True)
    if not 2 <= len(values) <= 64:
        return None  # a picture as target, not a map of labels
    ground = values[
        counts.argmax()
    ]  # the commonest label, as a rule the background, against all others
    masks = [(m.numpy() != ground).astype(np.float64)[::step, ::step] for _, m in pairs]
    kept = [i for i, m in enumerate(masks) if 0.0 < m.mean() < 1.0]
    pictures, masks = [pictures[i] for i in kept], [masks[i] for i in kept]
    if len(kept) < MIN_SAMPLES:
        return None
    ways = [w for w in _WAYS if height == width or not ("quarter" in w or "transposed" in w)]
    best = _best_ways(pictures, masks, ways)
    # The best of eight ways fits a little even where nothing fits: masks of other samples show how
    # much that is.
    null = _best_ways(pictures, [*masks[1:], masks[0]], ways)
    other = [way for way, _, gain in best if gain > CLEAR]
    named = max(set(other), key=other.count) if other else None
    return MapFit(
        len(best),
        len(other) / len(best),
        named,
        float(np.median([score for _, score, _ in best])),
        float(np.median([score for _, score, _ in null])),
    )


def _best_ways(
    pictures: list[Floats], masks: list[Floats], ways: list[str]
) -> list[tuple[str, float, float]]:
    """For each sample the way its mask fits best, how well, and by how much more than as it is."""
    chosen = ["as it is"] * len(masks)
    scores: list[dict[str, float]] = []
    for _ in range(
        ROUNDS
    ):  # a fit to masks that lie wrong is weak: it is made again with those that it found to fit
        weights = _fit(pictures, [_WAYS[w](m) for w, m in zip(chosen, masks, strict=True)])
        told = [np.tensordot(weights, p, axes=1) for p in pictures]
        scores = [
            {w: _correlation(t, _WAYS[w](m)) for w in ways}
            for t, m in zip(told, masks, strict=True)
        ]
        before, chosen = chosen, [max(s, key=lambda w: s[w]) for s in scores]
        if chosen == before:
            break
    return [
        (max(s, key=lambda w: s[w]), max(s.values()), max(s.values()) - s["as it is"])
        for s in scores
    ]


def _fit(pictures: list[Floats], masks: list[Floats]) -> Floats:
    x = np.concatenate([p.reshape(len(p), -1) for p in pictures], axis=1)
    y = np.concatenate([m.ravel() for m in masks])
    x = x - x.mean(1, keepdims=True)
    ridge = 1e-3 * np.trace(x @ x.T) / len(x) + 1e-12
    weights: Floats = np.linalg.solve(x @ x.T + ridge * np.eye(len(x)), x @ (y - y.mean()))
    return weights


def _features(picture: Floats) -> Floats:
    """Each channel, its square, and both averaged over the 5 x 5 places around."""
    channels = np.concatenate([picture, picture**2])
    return np.concatenate([channels, np.stack([_around(c) for c in channels])])


def _around(channel: Floats) -> Floats:
    padded = np.pad(channel, 2, mode="edge")
    windows: Floats = np.lib.stride_tricks.sliding_window_view(padded, (5, 5)).mean(axis=(2, 3))
    return windows


def _correlation(a: Floats, b: Floats) -> float:
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / norm if norm > 0 else 0.0
