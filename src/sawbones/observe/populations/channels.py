"""Pictures whose channels come in another order than those that the model was trained on (BGR for
RGB): how the channels vary together is that of the trained pictures once they are put back.

Correlations between channels do not change when each is scaled and moved, so it does not matter how
the pictures were normalised.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from sawbones.observe.populations.judged import Judged
from sawbones.schema.populations import SwappedChannels

LEAST_PICTURES = 40
MAX_PICTURES = 1000
CHANNELS = 3
REVERSED = (2, 1, 0)  # what libraries differ in: taken where it fits as well as another order
CLEARLY = 6.0  # times the noise by which correlations differ as they come
AGAIN = 2.0  # times the noise by which they may differ once put back
LEAST_APART = 0.1  # of the correlations themselves

Numbers = npt.NDArray[np.float64]


def swapped_channels(
    reference: Judged, served: Judged, shape: tuple[int, ...] | None
) -> SwappedChannels | None:
    """The order that puts the channels back; None where they are as in the reference."""
    if shape is None or len(shape) != 3 or shape[0] != CHANNELS:
        return None
    ours, theirs = (_covariances(one, shape) for one in (reference, served))
    if min(len(ours), len(theirs)) < LEAST_PICTURES:
        return None
    known = _correlations(ours)
    noise = max(_noise(ours), _noise(theirs))
    found = _correlations(theirs)
    apart = _distance(known, found)
    if apart < max(CLEARLY * noise, LEAST_APART):
        return None
    orders = [o for o in itertools.permutations(range(CHANNELS)) if o != tuple(range(CHANNELS))]
    left = {order: _distance(known, found[np.ix_(order, order)]) for order in orders}
    fits = [order for order in orders if left[order] <= AGAIN * noise]
    if not fits:
        return None
    best = REVERSED if REVERSED in fits else min(fits, key=lambda order: left[order])
    return SwappedChannels(served.number, len(served.hashes), best, apart, left[best], noise)


def _covariances(one: Judged, shape: tuple[int, ...]) -> Numbers:
    """Sums of products of the channels, picture by picture: with 1 as a fourth for the means."""
    rows = one.rows[:: -(-len(one.rows) // MAX_PICTURES)]
    pixels = rows.reshape(len(rows), CHANNELS, -1).astype(np.float64)
    with_one = np.concatenate([pixels, np.ones_like(pixels[:, :1])], axis=1)
    found: Numbers = np.einsum("nip,njp->nij", with_one, with_one) / pixels.shape[2]
    return found


def _correlations(sums: Numbers) -> Numbers:
    mean = sums.mean(0)
    covariance = mean[:3, :3] - np.outer(mean[:3, 3], mean[:3, 3])
    spread = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
    found: Numbers = covariance / np.outer(spread, spread)
    return found


def _distance(a: Numbers, b: Numbers) -> float:
    return float(np.abs(a - b).max())


def _noise(sums: Numbers) -> float:
    """What two halves of the same pictures differ by, for as many as there are."""
    rng = np.random.default_rng(0)
    apart = []
    for _ in range(20):
        order = rng.permutation(len(sums))
        half = len(sums) // 2
        apart.append(
            _distance(_correlations(sums[order[:half]]), _correlations(sums[order[half:]]))
        )
    return float(np.mean(apart)) / 2**0.5 + 1e-6
