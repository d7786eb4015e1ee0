"""Limits of the faults of the data."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

# data.class-imbalance
CLASS_RATIO = Limit(
    20,
    "times as many samples of the commonest class",
    "at 1 in 20 guessing the commonest class is right in 95 %, the usual level of a good score",
    weak=15,
)
LABEL_EVENNESS = Limit(
    0.6,
    "entropy of the labels over that of equally common classes",
    "above it the common classes keep each other in check; two classes at 15 to 1 have 0.34",
)
RARE_FOUND = Limit(
    0.02,
    "share of the samples of rare classes",
    "1 of 50: a stray hit; a class that is learned at all is found far more often",
)
RARE_WEIGHT = Limit(
    2,
    "times the weight of the other classes",
    "twice is meant: means of 0/1 masks over a batch differ by less",
)

# data.degenerate-samples
NONFINITE_STEPS = Limit(
    0.5,
    "share of steps",
    "half: batches without a target are single ones; weights that are NaN spoil every later step",
)
ZERO_COUNTS = Limit(
    0.2,
    "share of the divisor",
    "a few samples are empty; a divisor that is mostly zero is no count of what samples hold",
)
MODEL_CALLS_PER_PASS = Limit(
    1.5,
    "calls of modules per backward pass",
    "between one call, which is given samples, and two, which are given parts of them",
)
REPEATED_SAMPLE = Limit(
    0.1,
    "share of an epoch",
    "drawn with replacement, one of n >= 50 samples comes in 1/n of the draws, give or take",
)
DISTINCT_OTHERS = Limit(
    0.9,
    "distinct samples per sample",
    "drawn with replacement they are 1 - 1/e = 0.63; small discrete data repeats even more",
)
EMPTY_ROWS = Limit(
    0.05,
    "share of all rows",
    "a twentieth: fewer empty rows than that do little harm",
)
OFTEN_REPEATED = Limit(
    0.002,
    "share of all samples",
    "1 in 500: twice or more what a pair of chance duplicates makes up",
)
REPEATS_OFF_EMPTY = Limit(
    0.3,
    "share of the empty rows",
    "repeated samples have to account for the empty rows, rare and accidental repeats aside",
)
SEEN_AGAIN = Limit(
    0.3,
    "share of a batch",
    "a new epoch brings nearly only known samples, chance duplicates few",
)

# data.label-out-of-range
RAREST_LABEL = Limit(
    0.2,
    "of the times that each label would come if all were equally common",
    "a class 0 as rare as that might just not have come; one as common as the others would have",
)

# data.labels-misaligned; pipeline.augmentation and pipeline.truncation ask the same probe
LABEL_SIGNAL_Z = Limit(
    4,
    "standard deviations above permuted labels",
    "normal tail 3e-5, times the few hundred probes that a user may ever see: under 1 %",
)
LABEL_HINT_Z = Limit(
    2,
    "standard deviations above permuted labels",
    "normal tail 2 %: labels of other inputs stay below it, a hard task often does not",
)
LABEL_ORDER_Z = Limit(
    6,
    "standard deviations above permuted labels",
    "the best of up to 160 orders: normal tail 1e-9 times that, with a spread that 30 permutations "
    "estimate; labels that are noise came to 3.2 in the best of theirs, the weakest real one to 7.5",
)
LABEL_SIGNAL_GAIN = Limit(
    0.1,
    "of the way from chance to certainty",
    "a tenth: with many samples a gain that is of no use is significant, too",
)
COMMONEST_LABEL = Limit(
    0.8,
    "share of the samples",
    "neighbours of a rare class are nearly all of the common one: missing it tells nothing",
)
PAIRING_FITS = Limit(
    0.5,
    "score of another pairing",
    "half, and twice that of the pairing as it is: shown beside, decides nothing",
)
ANSWERS_MOVED_ALONG = Limit(
    0.9,
    "share of the answers",
    "all of them do, but for one of ten: examples of the same length need not change places",
)
ANSWERS_FOUND_AGAIN = Limit(
    0.99, "share of the answers", "all: in another order, a model of single examples says the same"
)
PAIRING_GAIN = Limit(2, "times the score as it is", "twice: shown beside, decides nothing")
MAPS_RECOGNISED = Limit(
    0.1,
    "share of the pictures",
    "of fewer pictures whose map is recognisable the others say nothing",
)
OWN_MAPS = Limit(
    0.1,
    "share of the recognised maps",
    "aligned sets show nearly 1, shuffled ones 1 over the number of pictures",
)
FIT_BESIDE = Limit(
    0.6,
    "of the correlation with the map that fits best",
    (
        "the map beside the picture fits as well as the best in aligned sets, far less in "
        "shuffled ones"
    ),
)
LEARNED_OF_DRAWS = Limit(
    0.95,
    "loss at the end, of that of the best constant answer to the numbers drawn",
    "nothing can be learned of numbers that the input knows nothing of: 1, and 0.01 off with the "
    "1,000 and more targets of a fifth of a run; a denoiser comes far below it",
)
OFF_CONSTANT = Limit(
    1.25,
    "loss at the end, of that of the best constant answer to the numbers drawn",
    "answers that still wander lie a little above it; far above it something else is measured",
)

# data.unnormalized-input
INPUT_SCALE = Limit(
    20,
    "root mean square of the inputs",
    "first activations are that many times what initialisation is made for; up to 8 trains well",
    weak=8,
)
LARGEST_INPUT = Limit(
    20,
    "largest absolute input",
    "standardised inputs stay under 5, with outliers; pixels, prices and years lie above",
)
LOSS_FALL = Limit(
    0.5,
    "share of the first loss",
    "half: such a run copes with its inputs, and the trial decides",
)
