"""Limits of the faults of the model."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

# Attention: scale of the scores
SCALE_OFF = Limit(
    0.05,
    "relative distance of a scale from the one expected",
    "the spread of some thousand scores is known to a few per cent; heads of width 4, the "
    "narrowest judged, are off by a factor of 2",
)
SCORE_SPREAD = Limit(
    0.8,
    "standard deviation of the scores",
    "of projections by torch's own initialisation, undivided; below it the softmax is still flat "
    "and the missing division costs nothing yet",
    weak=0.0,
)
SCORES_PEAKED = Limit(
    2.5,
    "standard deviation of the scores",
    "scores that spread so far are sure of one key whatever is added to them",
)
DRAWN_SMALLER = Limit(
    1.3,
    "ratio of the spreads of queries and keys, times the root of the head's width",
    "1 where the division is in the weights, as in T5, but for the noise of the draw",
)
# First weights
GAIN_LARGE = Limit(
    3.0,
    "spread of the weights times the root of their inputs",
    "0.1 to 1.5 is usual: torch's defaults give 0.58, Kaiming 1.41, Xavier about 1",
)
STEPS_LEFT = Limit(
    0.85,
    "size of steps from pixel to pixel with colours read as the last axis, over those as given",
    "noise gives 1.00 in 8 pictures of 8 x 8, pictures whose axes are right more than 1; small "
    "shapes in noise, reshaped, 0.75",
)
GAIN_SMALL = Limit(
    0.05,
    "spread of the weights times the root of their inputs",
    "0.1 to 1.5 is usual: 0.02 for transformers of 512 inputs gives 0.45",
)
FIRST_LOSS = Limit(
    2.0,
    "times the loss of an even guess",
    "scores near zero guess evenly; scores of spread 1 add a half to the loss of ten classes",
)
FIRST_ERROR = Limit(
    30.0,
    "times the mean square of the targets",
    "outputs near zero have this error; targets far from zero are met late by healthy models too",
)
ACTIVATIONS_LEFT = Limit(
    1e-3,
    "share of the spread in the first layer",
    "what is left is below the rounding of a mixed-precision sum with a bias",
)
VALUES_PER_CHANNEL = Limit(
    4.0,
    "values per channel",
    "the variance of four values is off by 80 % at one standard error, that of eight by 50 %; the "
    "usual advice is to expect trouble from eight on",
    weak=8.0,
)
# What depends on what
FUTURE_INFLUENCE = Limit(
    1e-4,
    "share of an output's influence, or of its attention",
    "a causal model has exactly 0; rounding of a float32 backward stays far below",
)
FAINT_FUTURE = Limit(
    0.01,
    "share of an output's influence",
    "what a latent code drawn at random from the whole text tells of it",
)
EARLIER_OUTPUTS_MOVE = Limit(
    1e-3,
    "share of the outputs' spread",
    "rounding of a causal model stays far below; a leak moves them by about their spread",
)
OTHER_EXAMPLES = Limit(
    1e-3,
    "share of an example's influence",
    "examples that are kept apart have exactly 0; rounding of a float32 backward stays far below",
)
DRAWN_ELSEWHERE = Limit(
    0.5,
    "share of a batch's examples",
    "of streams that are read on, nearly all rows lie the same step behind the row before; of rows "
    "that are drawn, about one in the number of all rows",
)
WEIGHTS_MOVED = Limit(
    1e-6,
    "share of a parameter's size",
    "rounding of a float32 sum: weights that nobody writes stay",
)
MODEL_UNMOVED = Limit(
    1e-6, "share of the outputs' spread", "rounding of float32: the outputs are the same"
)
PACKED_POSITIONS = Limit(
    0.75,
    "largest position over the length of the row",
    "two documents in a row of about equal length give one half; one of them gives 1",
)
PADDED_ROWS = Limit(
    0.2, "share of the tokens", "above it padding, not packing, keeps positions low"
)
# Units and parameters
ZERO_VALUES = Limit(
    0.95,
    "share of the values after a ReLU",
    "half is usual; sparse models with a trained threshold reach 0.9",
)
SILENT_UNITS = Limit(
    0.6,
    "share of the units of a layer",
    "a few are silent on any batch; more than half is no accident of one batch",
)
ROWS_TO_BE_SILENT_OVER = Limit(
    16,
    "rows that a unit was seen on",
    "one that fires for a row in five is silent on sixteen by chance in 3 % of all cases",
)
SATURATED_VALUES = Limit(
    0.8, "share of the values", "inputs of spread 1 saturate a tanh at fewer than 1 %"
)
RAW_INPUT = Limit(
    10.0,
    "mean or standard deviation of the data",
    "such inputs saturate any layer: the data is where to begin",
)
LOSS_UNMOVED = Limit(
    0.1, "share of the first loss", "what noise alone moves the median of a fifth of a run by"
)
# Masks
COIN_SPREAD_OFF = Limit(
    0.01,
    "distance of the variance from p (1 - p)",
    "values of 0 and 1 have exactly this variance; some in between are off by more",
)
MASK_EQUAL = Limit(
    0.999, "share of the positions", "it is the padding itself, but for a single odd position"
)
PADDING_SEEN = Limit(
    0.02, "share of the positions", "less padding, or less that is none, shows nothing of a mask"
)
MASK_FILL = Limit(
    -1e3, "value filled in", "what takes a score out of a softmax; ordinary scores stay above -100"
)
SHARE_HIDDEN = Limit(
    0.5, "share of the keys let through", "half: most of the past and the own position are hidden"
)
PADDED_EXAMPLES = Limit(
    0.05, "share of the tokens that stand in padded rows", "fewer do not show in an average"
)
MASS_ON_PADDING = Limit(
    0.95,
    "share of the attention, of what padded rows could put there",
    "an inverted mask leaves all of it on padding; without any mask it is the share of padding",
)
PAD_MASS = Limit(1e-3, "share of the attention", "a mask that hides padding leaves exactly 0 there")
KEYS_OPEN = Limit(
    0.98, "share of the pairs that a mask lets through", "less than that hides something"
)
ORDINARY_VALUES = Limit(
    1e4, "size of the inputs", "products of such values and weights stay far from overflowing"
)
BLIND_QUERIES = Limit(
    0.02,
    "share of the queries whose every key is hidden, and that the loss depends on",
    "1 in 50: a node without neighbours or an empty text now and then does little harm",
)
SCORES_OVERFLOWED = Limit(1e30, "size of the scores", "they have exploded by themselves")
SPELLING = Limit(
    0.85,
    "similarity of two names, as difflib counts it",
    "two letters of `requires_grad` exchanged, missing or added",
)
# Positions
POSITION_MEAN_OFF = Limit(
    0.01, "share of the highest id", "ids 0, 1, ... n have a mean of n / 2; tokens have another"
)
POSITION_SPREAD_OFF = Limit(
    0.1,
    "relative distance of the spread from that of ids 0, 1, ... n",
    "batch by length ids have it exactly, but for the correction by n - 1",
)
IDS_STANDING_STILL = Limit(
    0.5,
    "share of the steps in time",
    "padding on the left may keep ids waiting as long, but then all rows start alike",
)
CACHED_DIFFERS = Limit(
    0.01,
    "relative distance of the outputs",
    "rounding of half precision over some layers stays below; a wrong position moves them by 0.1",
)
SINE_BOUND = Limit(1.001, "size of the values", "sines and cosines, with half-precision rounding")
# Normalisation and depth
NO_EPSILON = Limit(1e-30, "eps of a normalisation", "it vanishes beside any float32 variance")
LOSS_CALM = Limit(
    3.0,
    "the last loss over the median so far, plus a third",
    "three times, and one more where losses are near zero: it had not diverged",
)
GRADIENT_LEFT = Limit(
    1e-3,
    "gradient per entry that arrives at the first third of the layers over that of the last layers",
    "healthy depths lose a factor of ten at most; Adam's epsilon begins to matter below",
)
GRADIENT_ORDER = Limit(
    0.8,
    "rank correlation of gradient size with depth",
    "six layers in order by chance: 1 in 40; single small layers do not follow the depth",
)
LARGEST_SHARE = Limit(
    1.001,
    "the largest of some values that may be shares",
    "no share is above 1; half precision rounds the values below 1 to steps of 2^-11",
)
