"""Whether the label maps of a data set lie beside other pictures than their own.

Every picture is compared with every map. Where pictures and maps come apart as a whole (one list
sorted by name, the other by number), each picture still has one map in the set that fits it far
better than all others do, and it is not the one beside it.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.random_streams import streams_put_back
from sawbones.observe.signals.mask_fit import picture_and_map
from sawbones.schema.labels import MapPartners

MIN_SAMPLES, MAX_SAMPLES = 40, 400
MAX_SECONDS = 1.5
MAX_SIDE = 24
CLEAR = 0.12  # of correlation, between the map that fits best and the second best

Floats = npt.NDArray[np.float64]


def probe_partners(dataset: Any) -> MapPartners | None:
    """How many pictures have one map that fits clearly best, and for how many of these it is their
    own.
    """
    try:
        size = len(dataset)
    except (TypeError, NotImplementedError):
        return None
    ends = time.perf_counter() + MAX_SECONDS
    pairs = []
    try:
        with streams_put_back():
            for i in range(min(size, MAX_SAMPLES)):
                pair = picture_and_map(dataset[i])
                if pair is None or time.perf_counter() > ends:
                    break
                pairs.append(pair)
    except Exception:  # a data set whose files are gone by now
        return None
    if len(pairs) < MIN_SAMPLES or len({(tuple(p.shape), tuple(m.shape)) for p, m in pairs}) != 1:
        return None
    return compare_all(pairs)


def compare_all(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> MapPartners | None:
    labels = torch.stack([m for _, m in pairs])
    values, counts = torch.unique(labels, return_counts=True)
    if not 2 <= len(values) <= 64:
        return None  # a picture as target, not a map of labels
    masks = _rows((labels != values[counts.argmax()])[:, None].double())[0]
    pictures = torch.stack([p for p, _ in pairs]).double()
    around = torch.nn.functional.avg_pool2d(
        pictures, 5, stride=1, padding=2, count_include_pad=False
    )
    best: MapPartners | None = None
    for seen in (*_rows(pictures), *_rows((pictures - around).abs())):
        fit = np.abs(seen @ masks.T)
        order = np.sort(fit, axis=1)
        choice = fit.argmax(1)
        mutual = fit.argmax(0)[choice] == np.arange(len(fit))
        told = mutual & (order[:, -1] - order[:, -2] > CLEAR)
        found = MapPartners(
            len(fit),
            float(told.mean()),
            float(np.mean(choice[told] == np.flatnonzero(told))) if told.any() else 1.0,
            float(np.median(order[told, -1])) if told.any() else 0.0,
            float(np.median(np.diag(fit))),
        )
        if best is None or found.told > best.told:
            best = found
    return best


def _rows(maps: torch.Tensor) -> list[Floats]:
    """For each channel the samples as rows of unit length, without what all samples share at a
    place.
    """
    side = min(MAX_SIDE, *maps.shape[-2:])
    small = torch.nn.functional.adaptive_avg_pool2d(maps, side).flatten(2)
    small = small - small.mean(0, keepdim=True)
    small = small - small.mean(-1, keepdim=True)
    small = small / small.norm(dim=-1, keepdim=True).clamp(min=1e-9)
    return [small[:, channel].numpy() for channel in range(small.shape[1])]
