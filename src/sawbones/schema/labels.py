"""What inputs say about the labels beside them."""

from __future__ import annotations

from dataclasses import dataclass

from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class Pairing:
    """Another way to put inputs and labels together."""

    name: str  # shifted by 1, reversed, ...
    score: float
    as_is: float


@dataclass(frozen=True, slots=True)
class LabelsTold:
    """How well inputs predict labels not fitted to, against permuted labels."""

    kind: str  # classes, values, tokens
    num: int  # samples, or tokens
    score: float
    chance: float
    spread: float  # of the score, by chance
    z: float
    baseline: float | None = None  # loss of the best constant answer
    best: Pairing | None = None


@dataclass(frozen=True, slots=True)
class PairedBefore:
    """The same rows and labels in another order, and as they are trained on."""

    then: LabelsTold
    now: LabelsTold
    order: str  # in words
    apart: Site | None = None  # the line that made them as they are trained on


@dataclass(frozen=True, slots=True)
class MapPartners:
    """Pictures of a data set, each compared with all maps of labels; shares."""

    samples: int
    told: float  # have one map that fits clearly best
    own: float  # of those: it is the one beside them
    fit: float  # of the best map, median
    beside: float  # of the map beside the picture


@dataclass(frozen=True, slots=True)
class LabelProbe:
    batches: LabelsTold | None = None  # as training used them
    dataset: LabelsTold | None = None  # in the data set's own order
    maps: MapPartners | None = None
    before: PairedBefore | None = None


@dataclass(frozen=True, slots=True)
class MapFit:
    """How masks lie on the pictures they come with."""

    samples: int
    better_otherwise: float  # share that fits clearly better mirrored or turned
    way: str | None  # the commonest of these
    fit: float
    by_chance: float


@dataclass(frozen=True, slots=True)
class DrawsHeld:
    """What inputs tell as they are drawn, and with every sample drawn from one random state."""

    free: LabelsTold
    held: LabelsTold
    place: int  # which number of the label


@dataclass(frozen=True, slots=True)
class DrawnAlike:
    """Shares of samples that come out the same."""

    workers: float  # in two workers
    epochs: float = 0.0  # in one worker, in two epochs


@dataclass(frozen=True, slots=True)
class Redraw:
    """Samples of the data set read twice; shares of samples."""

    samples: int
    num_workers: int
    stream: bool = False
    changed: float = 0.0
    label_changed: float = 0.0
    spread: float | None = None  # between two draws, over that between samples
    probes: DrawsHeld | None = None
    maps: MapFit | None = None
    alike: DrawnAlike | None = None
