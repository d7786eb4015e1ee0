"""Limits of the faults of evaluation."""

from __future__ import annotations

from sawbones.evidence.limit import Limit
from sawbones.stats.moments import NEAR
from sawbones.stats.overlaps import WHOLE

PASSES_PER_STEP = Limit(
    0.5,
    "evaluations per training step",
    "half: passes without gradients inside of every step are part of training",
)
ROWS_SEEN = Limit(
    0.8,
    "share of the rows of a table",
    "the last batch may be dropped, and a run may be stopped in its first round",
)

# evaluation.collapsed-prediction
ONE_CLASS = Limit(
    0.99, "share of the predictions", "all but a stray one of 100: the inputs are not used"
)
COMMONEST_TARGET = Limit(
    0.8, "share of the targets", "a class that is commoner may well be predicted everywhere"
)
ALIKE_BY_ROUNDING = Limit(
    5e-7,
    "largest difference of scores between samples, in the largest score",
    "some units in the last place of float32: no input is left in them",
)
DECAY_TAKEN = Limit(
    4.6,
    "LR times weight decay, summed over the steps",
    "exp(-4.6): a hundredth of a weight is left",
)

# evaluation.leak-contamination, evaluation.wrong-split, evaluation.overfitting
COPIED_SAMPLES = Limit(
    0.02,
    "share of the distinct validation samples",
    "1 in 50 moves a score by up to 2 points; what would be met by chance is added",
)
NEAR_COPIES = Limit(
    0.25,
    "share of the validation samples with a near copy in training",
    "augmented or overlapping copies concern most samples; a quarter moves the score clearly",
)
TURNED_AT_RANDOM = Limit(
    0.02,
    "pictures known as they are, of those known in any of the eight positions",
    "training that turns its pictures at random shows an eighth of them as they are",
)
NEAR_ABOVE_CHANCE = Limit(
    0.1,
    "share of the validation samples, less what comes about by chance",
    "two standard errors of a share of 100 samples",
)
NEAR_ALONE = Limit(
    0.35,
    "share of the validation samples behind whose nearest ones lies a gap of five times",
    "of the points of a line a quarter have one by chance (the sum of all 0.2**k), in more "
    "directions fewer; and two standard errors",
)
MEDIAN_DISTANCE = Limit(
    0.1,
    "distance to the first neighbour in those to the tenth",
    "a median as near as that is that of copies, and tells nothing of the directions of the data",
)
TRAINING_COPIES = Limit(
    0.2,
    "share of the samples of one training epoch",
    "oversampling before the split: then even a whole validation set is met again as copies",
)
COPIES_OF_THIS_SOURCE = Limit(
    0.8,
    "share of the token rows met again in any evaluation",
    "a score on the training rows meets all of them again: those must not count here",
)
RARE_COPIES = Limit(
    0.05, "share of the evaluated token rows", "a twentieth: single texts are quoted everywhere"
)
TEMPLATE_ROWS = Limit(
    0.1,
    "share of rows that differ from a trained one in a place or two",
    "rows made by a template coincide by its rules",
)
NEAR_BESIDE_COPIES = Limit(
    0.1,
    "share of the copies with another trained row in a third of the usual distance",
    "handwritten digits of 8 x 8 pixels have none; one-hot tables and drawn shapes nearly all",
)
NEAR_AS_USUAL = Limit(
    0.5,
    "share of the copies with another trained row in a third of the usual distance",
    "half: then being near is what rows of this kind are, and being equal may be, too",
)
READ_ONCE = Limit(
    0.1,
    "share of the trained samples",
    "a second epoch reads all but the last of them again: then it is known which ones they are",
)
TRAINED_AGAIN = Limit(
    0.5,
    "share of the trained samples that are in one evaluated batch",
    "half: a batch of all data holds every one of them, a test set with copies only some",
)
MIXED_BATCH = Limit(
    0.03,
    "share of a batch, of the rarer of known and new samples",
    "chance duplicates: a batch of one kind has fewer of the other",
)
MIXED_BATCHES = Limit(
    0.3, "share of the large batches", "an overlap of the split is in most of them"
)
KNOWN_SAMPLES = Limit(
    WHOLE, "share of the evaluated samples", "so many shared samples, and the two parts are one"
)
KNOWN_IN_BATCH = Limit(
    0.5,
    "share of each batch",
    "half: one batch of new samples among them is a validation set",
)
FEWER_THAN_TRAINED = Limit(
    0.6,
    "evaluated samples per trained sample",
    "a part as small as a validation set; watching the training set evaluates all of it",
)
UNREAD_TEXT = Limit(
    0.03, "share of a text", "held out, and forgotten: usual splits hold out 5 % and more"
)
MOST_UNREAD = Limit(
    0.5, "share of a text", "half: a run that stops early in a long text leaves most of it unread"
)
UNREAD_WINDOWS = Limit(
    10,
    "mean gaps between windows",
    "at random places a gap ten times the mean comes about with e^-10, times 200 windows: 1 %",
)
WINDOWS_BEYOND = Limit(
    5, "mean gaps between windows", "evaluated windows may lie past the outermost trained one"
)
EARLY_REPEATS = Limit(
    0.05,
    "share of the first half of a round that repeats",
    "samples of a data set come again after all have come; windows of few words at once",
)

NEAR_TEXTS = Limit(
    0.1,
    "share of the evaluated texts that are nearly trained ones",
    "of 3110 tickets with copies 0.9, of the same 900 without them 0; quotations stay below",
)
ROWS_BETWEEN = Limit(
    0.05,
    "share of the evaluated rows that lie on the line between two trained ones",
    "rows of four real columns and more lie there to rounding only when they were interpolated",
)
IN_LINE_BY_CHANCE = Limit(
    0,
    "trained rows in line with two others that were taken at random",
    "one is enough to say that these rows vary in one direction, where every row is in line",
)

OVERLAPPED_WINDOWS = Limit(
    0.25,
    "share of the evaluated windows between two trained ones that overlap them, above chance",
    "a quarter: windows that overlap by half, dealt out to equal parts; parts cut anywhere have none",
)
WINDOWS_APART = Limit(
    0.05,
    "share of the evaluated windows that come along with none between trained ones",
    "beside a score on stretches that are trained on, a part of its own is a fifth or so",
)

# evaluation.leak-group
SHARED_GROUPS = Limit(
    0.5,
    "share of the held-out rows whose group is trained on",
    "half: a split by rows has nearly all, a split by groups none",
)

STRANGERS_FALL = Limit(
    0.05,
    "fall of the score over the same rows, at the least; of a distance, as a share of it",
    "the lower end of an interval over groups, after what fewer training rows cost: 5 points",
)

FALL_OF_ONE_ANSWER = Limit(
    0.01,
    "the same where all rows of a group have one answer",
    "to know the group is to know the answer: that the score falls at all is what is left to show",
)

# evaluation.leak-preprocessing
JOINT_MEAN = Limit(
    NEAR, "distance of the joint mean from 0", "rounding of float32 over some thousand values"
)

# evaluation.leak-target
ABOVE_CHANCE = Limit(
    0.65,
    "accuracy",
    "15 points above a coin, which is what it takes for a column to be looked at",
)
FILLED_IN = Limit(
    0.98,
    "share of one class with a value that the other class has as rarely",
    "a field that is filled in when the event takes place; causes have exceptions",
)
MOSTLY_FILLED_IN = Limit(
    0.9,
    "share of one class with a value that the other class has as rarely",
    "one row in ten was not filled in, or for another reason; alone it is no more than a strong cause",
)
AT_ONCE = Limit(
    0.7,
    "of what all other values say of the class, that the nearest tenth of them says",
    "a cause cut off at zero has its exceptions there: at most half is left with one row in ten",
)
EMPTY_BETWEEN = Limit(
    0.5,
    "rows between the classes, over those of an even spread",
    "of one hump cut in two it is 1 and more; two heaps by label leave it empty, by nature or not",
)

# evaluation.leak-temporal
EVENLY_SPACED = Limit(
    0.9,
    "share of the steps in time that are equal",
    "hours, days and months but for holidays; records that merely bear a date come unevenly",
)
DEALT_OUT = Limit(
    0.5,
    "of the turns between parts of rows dealt out at random",
    "half: a split by time has one turn, a rolling back-test a few",
)
LATER_WINDOWS = Limit(
    0.5,
    "share of the evaluated windows that a later trained one overlaps",
    "half: windows of parts cut at one moment overlap at the cut alone",
)

# evaluation.metric-averaging
UNEQUAL_BATCHES = Limit(
    0.6,
    "smallest batch over the largest",
    "above it a plain mean is off by little: samples count at most 1.7 times as much as others",
)
MEANS_APART = Limit(
    0.02, "relative difference of the two means", "2 % at some evaluation: it matters"
)
MEANS_DIFFER = Limit(
    1e-4,
    "relative difference of the two means",
    "equal but for rounding of float32 sums: what is printed cannot tell which it is",
)
PRINTED_AS = Limit(
    0.51,
    "units of the last printed digit",
    "rounding is off by half a unit, and binary fractions by a little more",
)
SCORE_DIGITS = Limit(
    0.001,
    "unit of the last printed digit, in the largest share",
    "three digits of a share: fewer are met by chance in a list of settings",
)
CHOSEN_AMONG = Limit(
    4, "steps at which the same rows were scored", "the best of fewer is hardly a choice"
)
PRINTED_APART = Limit(
    1.5,
    "units of the last printed digit",
    "two numbers further apart than that never print alike",
)
DIGITS_THAT_AGREE = Limit(
    5,
    "decimal digits, over all evaluations",
    "some ten numbers and mistakes meet by chance once in 10,000 runs",
)
WRONG_EVALUATIONS = Limit(
    0.8,
    "share of the evaluations at which the two means differ",
    "nearly all: other printed numbers agree by chance now and then",
)
PADDED_TOKENS = Limit(
    0.02,
    "share of the positions",
    "a mean over tokens of padded sequences, weighted by samples, is a matter of taste",
)

# evaluation.metric-padding
PADDED_METRIC = Limit(
    0.05, "share of the compared positions", "a twentieth: the score is off by up to 5 points"
)
ALL_PADDING = Limit(
    0.98, "share of the compared positions", "more, and the value is no padding but the commonest"
)
SCORE_CHANGED = Limit(
    0.01, "difference of the score", "one point: padding that is answered as the rest does no harm"
)
BLANK_ENDS = Limit(
    0.9,
    "full rows per batch",
    "each batch is padded to its own longest row, which has no blank end",
)
EQUAL_INSIDE = Limit(
    0.01,
    "share of the real positions",
    "real numbers are hardly ever equal where nothing is blanked out",
)

# evaluation.metric-threshold
RIGHT_UNDER_OTHER_NAMES = Limit(
    0.5,
    "share of answers that are right once the classes are renamed",
    "more than half, by names that were read off other rows, and surely more than without",
)
CUT_AS_PROBABILITY = Limit(
    0.8,
    "the cut, or 1 less the cut",
    "a cut between 0.2 and 0.8 is meant for probabilities; others may have been tuned on logits",
)
CUT_IN_THE_MIDDLE = Limit(
    0.6, "the cut, or 1 less the cut", "between 0.4 and 0.6: meant as one half"
)
OUTSIDE_UNIT = Limit(
    0.05, "distance outside of [0, 1]", "probabilities never leave it, but for rounding"
)
ROUNDED_OUTSIDE = Limit(
    0.6, "distance outside of [0, 1]", "rounded, such scores are neither 0 nor 1: above a half"
)

# evaluation.overfitting
RISE = Limit(
    1.4,
    "last validation loss over the best",
    "validation losses of healthy runs wander by 10 or 20 %",
)
RISE_BY_HEART = Limit(
    1.04, "last validation loss over the best", "a little, where training was learned by heart"
)
RISE_MOSTLY = Limit(
    1.1,
    "last validation loss over the best",
    "a tenth, where training is nearly learned by heart and the rise never turns back",
)
TRAINING_FALL = Limit(
    0.6,
    "training loss at the end, over then or over validation",
    "below it training goes on falling while validation does not",
)
BY_HEART = Limit(
    0.05, "training loss at the end, over then or over validation", "a twentieth: memorised"
)
MOSTLY_BY_HEART = Limit(
    0.2, "training loss at the end over that at the best evaluation", "a fifth: nearly memorised"
)
FAR_BELOW_VALIDATION = Limit(
    0.1, "training loss at the end over the validation loss", "a tenth: another level altogether"
)
BEST_IS_EARLY = Limit(
    0.6, "place of the best evaluation in the run", "a short rise at the end is normal"
)
LEAST_RISE = Limit(0.05, "validation loss", "a rise from almost nothing to little is none")
RISING_STEADILY = Limit(
    0.65, "share of the steps between evaluations", "of noise without a trend half are rises"
)
RISING_ALWAYS = Limit(
    0.9,
    "share of the pairs of evaluations whose later one is higher",
    "nine of ten, however near in time the two are: it never turns back for long",
)
TRAINED_SAMPLES = Limit(
    0.05, "share of the evaluated samples", "else the split is not clean, which is another fault"
)
PART_OF_A_NUMBER = Limit(
    0.5, "trained samples over a number of the source", "a part is held out; ranks lines only"
)

# evaluation.preprocessing-mismatch
SPREAD_FACTOR = Limit(
    2.5,
    "spread in evaluation over training, or the inverse",
    "noise, mixing and erasing change it by less than 2",
)
MEAN_DISTANCE = Limit(
    3,
    "standard deviations of training inputs",
    "a later stretch of a time series may move by one or two",
)
BEYOND_BATCH_SPREAD = Limit(
    1.5, "times the factor of the most unusual training batch", "by far more than among themselves"
)
BEYOND_BATCH_MEANS = Limit(
    4, "times the distance of the most unusual training batch", "by far more than among themselves"
)
FEATURE_BEYOND_BATCH_MEANS = Limit(
    3, "times the distance of the most unusual training batch", "as above, several features agree"
)
SINGLE_FEATURE = Limit(
    8,
    "factor, or standard deviations, of one feature alone",
    "a column in another unit is far off; a count of days goes on after the split, but not so far",
)
SINGLE_BEYOND_BATCH_MEANS = Limit(
    32, "times the distance of the most unusual training batch", "8 times 4, for one feature alone"
)
LIVING_FEATURE = Limit(1e-6, "spread of a feature", "a constant, but for rounding of float32")
ODD_FEATURES = Limit(
    0.3, "share of the features", "fewer are judged one by one, against a stricter limit"
)
NEARLY_ALL_FEATURES = Limit(
    0.8, "share of the features", "then the samples as wholes are compared as well"
)
SAMPLES_ALIKE = Limit(
    1.5, "spread within a sample, evaluation over training", "less, and each sample is as ever"
)
SAME_MEAN = Limit(
    1e-3,
    "relative difference of two means",
    "the same batch at the loader and at the model, in another dtype; ranks lines only",
)
