"""Limits of the faults of the loss."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

STEPS_AGREEING = Limit(
    1.0,
    "share of the deep steps with this loss",
    "a layer or a shift that is in the program is there at every step",
)
WEIGHTS_FIT = Limit(
    0.98,
    "correlation of the root's gradient with that of the loss itself",
    "from here on the weight of a target is known to 2 %; from the weak limit on, zero can be "
    "distinguished from not zero",
    weak=0.9,
)
PAD_WEIGHT = Limit(
    0.02,
    "share of the weight of all targets",
    "below it padding is too rare in the batch to change what is learned",
)
PAD_COUNTED = Limit(
    0.5,
    "share of the padded positions",
    "half: ignoring acts on all of them alike; positions of input id 0 that are no padding are few",
)
BLANKS_COUNTED = Limit(
    0.9,
    "share of the blank positions",
    "rows of zeros are a weaker sign of padding than a filling id, so nearly all have to count",
)
PAD_TARGET = Limit(
    0.9,
    "share of the padded positions with one and the same target",
    "taggers have different labels there; an end-of-sequence target stands once in each row",
)
BLANK_TARGET = Limit(
    0.999,
    "share of the blank positions with one and the same target",
    "filling writes one number at all of them",
)
BLANK_STEPS = Limit(
    0.9, "share of the deep steps with blank positions", "filling happens in every batch"
)
BLANK_TARGET_ELSEWHERE = Limit(
    0.05,
    "share of the other targets",
    "a filling number hardly stands anywhere else; silence has the label that silence has "
    "elsewhere "
    "too, and where half of all targets are that label nothing can be said",
    weak=0.5,
)
TARGETS_COPIED = Limit(
    0.95,
    "share of the targets equal to the input",
    "a copy is 100 % less the ends of rows; words repeat at neighbouring places far less often",
)
NEXT_TOKEN_BEHIND = Limit(
    0.02,
    "share of the targets",
    "a text of repetitions fits at several shifts equally well, but for the ends of rows",
)
CAUSAL_FUTURE = Limit(
    0.01,
    "share of an output's influence",
    "a causal model has none; the influence is a mean over a few probed outputs in float32",
)
OWN_INFLUENCE = Limit(
    0.02,
    "share of an output's influence",
    "a decoder that does not see its own place has none; above the noise of the probe",
)
OWN_VALUE_MOVES = Limit(
    1e-3,
    "share of the outputs' spread",
    "what the output moves by when its own target moves: far above float32 rounding",
)
EARLIER_OUTPUTS_STAY = Limit(
    1e-5, "share of the outputs' spread", "rounding of float32 over a few layers"
)
FED_STEPS = Limit(0.5, "share of the deep steps", "half: short batches cannot be probed")
SUMMED_STEPS = Limit(
    0.9, "share of the deep steps", "a reduction is the same at every step; last batches are small"
)
SUM_WEIGHT_OFF = Limit(
    0.03,
    "distance of a target's weight from 1",
    "the weights are known to 2 % (WEIGHTS_FIT); a mean over 4 targets would be off by 0.75",
)
SUM_RATIO_OFF = Limit(
    0.02,
    "relative distance of the root from the sum of its elements",
    "rounding of float32 sums; a mean over 4 targets would be off by 0.75",
)
SUM_ROOT_OFF = Limit(
    0.01,
    "relative distance of the root from the summed loss",
    "it must be that very number; rounding of a half-precision loss scale",
)
IGNORED_WEIGHT = Limit(
    1e-6, "share of the largest weight", "ignored targets weigh nothing, but for float32 rounding"
)
SUMMED_STEP_SIZE = Limit(
    1.0, "LR times number of targets", "a mean would need an LR of 1 to step as far"
)
SUM_CLIPPED = Limit(
    0.9, "share of the gradients", "nearly all are cut: the limit was chosen for another scale"
)
MEAN_CLIPPED = Limit(
    0.1, "share of the gradients", "divided by the number of targets nearly none would be cut"
)
CLASS_IMBALANCE = Limit(
    2.0,
    "largest count over the smallest",
    "below it the order of the counts is a matter of the batches that were seen",
)
WEIGHT_SPREAD = Limit(
    1.3, "largest weight over the smallest", "weights that are closer than that are alike"
)
COUNTS_FOLLOWED = Limit(
    0.8,
    "correlation of log weight with log count",
    "inverse weights give -1, costs chosen by hand about 0; inverted ones give 1 less the noise "
    "of the counts",
)
SHUFFLED_IMBALANCE = Limit(
    4.0,
    "largest count over the smallest",
    "with a smaller spread some order of the weights fits by chance",
)
SHUFFLED_WEIGHT_SPREAD = Limit(
    2.0, "largest weight over the smallest", "the root of SHUFFLED_IMBALANCE: weights may be roots"
)
SORTED_WEIGHTS_OFF = Limit(
    0.1,
    "standard deviation in log units, beyond the noise of the counts",
    "weights rounded to one digit",
)
SHUFFLED_WEIGHTS_OFF = Limit(
    0.6, "standard deviation in log units", "a factor of about 2 per class: no rounding does that"
)
SHUFFLED_OVER_SORTED = Limit(
    4.0, "ratio of the two deviations", "sorting has to explain the weights, not only to help"
)
CLASS_COUNTED = Limit(
    0.5, "share of the targets of a class", "half: the others are masked and say nothing"
)
LABEL_SMOOTHING = Limit(
    0.5, "share of the target", "half: from here on the right class has less than all others"
)
ROW_SUM_OFF = Limit(
    0.03,
    "distance of a row's sum from 1",
    "rounding to half precision over a thousand classes; one share too many of 0.1 / 3 is more",
)
ROW_SUM_SPREAD = Limit(
    0.05, "share of the largest sum", "rows of different sums carry a weight each, on purpose"
)
EMPTY_ROW = Limit(1e-6, "sum of a row", "rows of zeros are padding, but for float32 rounding")
LOG_PROBABILITY = Limit(
    0.01,
    "largest input",
    "a log-probability is never positive; half precision rounds log 1 to below this",
)
LABELS_PER_ROW = Limit(
    1.5, "sum of a row of 0/1 targets", "between one label and two: sums are whole numbers"
)
TARGET_OUTSIDE = Limit(1e-3, "distance of a target from [0, 1]", "rounding of half precision at 1")
UNEVEN_CLASSES = Limit(
    2.0,
    "largest count over the smallest",
    "labels of classes are often made balanced; ratings and counts pile up",
)
INPUT_EXPLODED = Limit(
    1e5, "size of the operator's input", "beyond it the values themselves have exploded"
)
LOSS_EXPLODED = Limit(
    1e4, "size of the loss over its first value", "the run had diverged before the operator failed"
)
LOSS_DOUBLED = Limit(2.0, "end of the losses over their beginning", "twice: it had diverged")

# loss.flat-scores
UNIT_LENGTH = Limit(
    0.01,
    "root mean square of the entries times the root of their number, less 1",
    "exact for rows of length 1 but for the spread being that of a sample: 0.5 % for 100 entries",
)
LOSS_OUT_OF_REACH = Limit(
    0.8,
    "lowest loss that the range of the scores allows, over that of an even guess",
    "of 256 samples cosines over 0.5 give 0.31, plain ones 0.64, multiplied by 0.1 0.96",
)

# loss.reduction-sum: a reconstruction and what is added to it
OUTWEIGHED = Limit(
    10.0,
    "weight of each number of the other term over that of each number given back",
    "a bound on the likelihood weighs them alike; weights of up to 10 are chosen on purpose",
)
FULLY_MET = Limit(
    0.05,
    "value of the other term over that of the reconstruction",
    "nothing is left to gain by it, although the reconstruction has not begun",
)
SHARES_ROUNDED = Limit(
    5e-4,
    "of the sum of a row of shares, its distance from 1",
    "the rounding of half precision (2^-11), which a mean over rows does not exceed",
)
