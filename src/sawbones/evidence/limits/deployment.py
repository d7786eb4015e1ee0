"""Limits of the faults of deployment."""

from __future__ import annotations

import math

from sawbones.evidence.limit import Limit

# one population against another
ERROR_RISE = Limit(
    0.05,
    "rise of the error rate, at the least",
    "the lower end of its interval, corrected for all comparisons: 5 points are lost for certain",
)
ERROR_FACTOR = Limit(
    1.5,
    "error over that of the other population",
    "half as much again: two test sets of a few hundred rows differ by less",
)
DISTANCE_RISE = Limit(
    math.log(1.5),
    "rise of the logarithm of the mean distance, at the least",
    "the same factor for quantities, as the lower end of its interval",
)
PRECISION_FALL = Limit(
    0.2,
    "fall of the share of right answers among those of one class, at the least",
    "one alarm in five more is false, while the accuracy may not move: rare classes weigh little",
)
MOVED_COLUMN = Limit(
    0.15,
    "Kolmogorov-Smirnov distance of a column",
    "half as far again as the audit's 0.1: rows of one source stay below it from 500 rows on",
)
MOVED_TOGETHER = Limit(
    0.2,
    "excess of rows whose nearest neighbour is of their own population, at the least",
    "the lower end of its interval, 0 for rows of one source: a fifth of the rows lie elsewhere",
)
OTHER_UNIT = Limit(
    math.log(3),
    "logarithm of the factor of a column's spread",
    "populations of one source keep their spread within 2; units differ by 3.3 (feet) and more",
)
OTHER_ZERO = Limit(
    6,
    "spreads by which a column moved",
    "no value of the one is met in the other; degrees with another zero move by so much",
)
FEW_MOVED = Limit(
    0.34,
    "share of the columns that have another unit",
    "a third: a changed definition concerns one column or a few, another world all of them",
)
FAR_OUTSIDE = Limit(
    50,
    "spreads by which a column moved, or factor of its spread",
    "trends, other machines and extrapolation stay below 30; most units are off by 100 or 1000",
)
NEXT_TO_NOTHING = Limit(
    0.5,
    "Kolmogorov-Smirnov distance of the column",
    "most rows have it: a few outliers widen a column by any factor",
)
OTHER_RATES = Limit(
    0.1,
    "difference of a class's share, or distance of the targets",
    "a tenth of the rows belong to another class: less does not explain a far worse score",
)
WITHIN_CLASS = Limit(
    0.2,
    "distance of a column within one class",
    "beyond it the inputs moved on their own, not only with the classes",
)

# one kind of row
KIND_RISE = Limit(
    0.15,
    "rise of the error rate, at the least",
    "three times what counts between populations: kinds differ in difficulty by nature",
)

# deployment.serving-parity
OTHER_ANSWERS = Limit(
    0.05,
    "share of the rows that get another class, or distance in spreads of the answers",
    "weights of 8 bits change the class of one row in a hundred; a twentieth is no rounding",
)
COPY_LOSS = Limit(
    0.03,
    "loss of the score row by row, at the least; of a distance, as a share of it",
    "the lower end of its interval: three points that the trained model had are gone",
)
SAME_WEIGHTS = Limit(
    1e-3,
    "relative distance of the parameters",
    "rounding to half precision leaves less; another state of training more",
)
SAME_BUFFERS = Limit(
    1e-3, "relative distance of the buffers", "as for parameters: running statistics were copied"
)
REGAINED = Limit(
    0.08,
    "rise of the accuracy for the same rows, prepared otherwise",
    "80 % of a loss of at least 10 points: see observe/populations/undoing.py",
)
OTHER_CHANNELS = Limit(
    0.1,
    "difference of the correlation of two channels",
    "and six times what two halves of the same pictures differ by: see observe/populations",
)
