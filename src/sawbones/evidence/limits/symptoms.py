"""Limits of the symptoms: where a curve is called ill, or worth a line."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

# How far two levels lie apart, in standard errors of their difference.
APART = Limit(
    4.0,
    "standard errors",
    "six in 100,000 by chance, over some twenty symptoms and many runs; errors are from blocks",
)
STILL_FALLING = Limit(
    3.0,
    "standard errors",
    "two comparisons: by chance in about one of 400 runs, as far as errors are normal",
)

# does-not-learn
STEPS_TO_TELL = Limit(
    40,
    "steps",
    "the last quarter then has ten losses, the fewest whose block error means anything",
)
STEPS_TO_RECONSTRUCT = Limit(
    200,
    "steps",
    "an autoencoder answers with the mean first: in 200 steps a healthy one has left it",
)
GAIN_OVER_CONSTANT = Limit(
    0.04,
    "share of the constant answer's loss",
    "upper end of the gain: of 362 healthy recordings the least had 0.058, 99 % had 0.245 or more",
)
THROWN_OVER_START = Limit(
    1.0,
    "share of the constant answer's loss",
    "lower end of the last quarter above the first loss and the constant answer alike: the first "
    "is one batch, whose own spread is smaller than what a constant answer costs",
)
STEPS_WITHOUT_UPDATE = Limit(
    20,
    "steps",
    "a scaler that starts too high skips up to 16 steps before it has halved its way down",
)
WARMING_UP = Limit(
    0.75,
    "share of the run at which the learning rate is highest",
    "a rate that peaks in the last quarter has had no time to show anything",
)
RATE_GROWN = Limit(
    2.0, "times the first learning rate", "a smaller rise is a schedule's wobble, not a warm-up"
)

# diverges
RISE_OVER_START = Limit(
    0.1,
    "share of the constant answer's loss",
    "above start and constant answer alike: of 363 healthy recordings the highest was at -0.09",
)
EXPLODES = Limit(
    10.0,
    "times the loss at the start",
    "of 128 healthy recordings without a known constant answer the most was 1.3",
)
WEIGHTS_EXPLODE = Limit(
    10.0,
    "times the weights at the start",
    "the weights of some 500 healthy recordings grew by a factor of 2.9 at most",
)

# does-not-generalise
LEARNED_TRAINING = Limit(
    0.8,
    "share of the constant answer's loss",
    "training a fifth below the constant answer has learned something that could carry over",
)
NO_BETTER_EVALUATED = Limit(
    1.0, "share of the constant answer's loss", "the definition: no better than a constant answer"
)
TARGETS_TO_TELL = Limit(
    200, "targets", "the loss of 200 targets is known to about 7 % of its spread"
)
ONE_CLASS_PREVAILS = Limit(
    0.8,
    "share of the labels",
    "where one class has four fifths, a good model may well score no better by counting hits",
)
EVEN_CLASSES = Limit(
    0.6,
    "share of the labels",
    "a model that has learned a little about rare classes may still answer with the commonest one",
)
HITS_OVER_COMMONEST = Limit(
    0.02, "share of the answers", "one in fifty above the commonest class, by the upper end"
)

# learns-slowly
SLOW_GAIN = Limit(
    0.1,
    "share of the constant answer's loss",
    "of 175 healthy recordings of 100 steps and more the least had gained 0.2",
)
STEPS_FOR_PACE = Limit(100, "steps", "shorter runs are smoke tests: their pace says nothing")

# the shapes of curves
SPIKE = Limit(10.0, "robust deviations", "the same as loop.loss-spike asks for")
SPIKE_HEIGHT = Limit(2.0, "times the level before", "at least doubled: a ripple at the end is none")
STEPS_BEFORE_SPIKE = Limit(10, "steps", "the first steps of any run leap")
EPOCHS_TO_COMPARE = Limit(4, "epochs", "three boundaries: fewer may agree by chance (1 in 4)")
STEPS_PER_EPOCH = Limit(8, "steps", "a fifth of an epoch has then two losses")
TOOTH = Limit(
    0.3,
    "share of the loss level",
    "two healthy runs with a smaller last window had 0.20 and 0.24; one healthy run lies above",
)
PLATEAU = Limit(
    0.25, "share of the run", "a quarter of the run without headway is a plateau to the eye"
)
PLATEAU_DROP = Limit(
    0.1, "share of the whole fall", "on the plateau at most a tenth of the later fall"
)
JUMP_FALL = Limit(0.6, "share of the whole fall", "most of the fall within the jump")
JUMP_TIME = Limit(0.15, "share of the run", "the jump itself takes no longer")
WHOLE_FALL = Limit(0.4, "share of the first level", "a run that falls by less has no such shape")

# evaluation
EVALUATIONS_TO_TELL = Limit(5, "evaluations", "fewer points have no shape")
BEST_EARLY = Limit(0.6, "share of the evaluations", "the best lies in the first 60 %")
RISEN = Limit(1.1, "times the best evaluation", "a tenth above the best at the end")
TRAINED_ON = Limit(0.8, "times the training loss then", "while training went on falling by a fifth")
TOO_GOOD = Limit(
    0.01,
    "share of the constant answer's loss",
    "within 30 steps: of 363 healthy recordings the lowest had 0.014",
)
EVALUATES_WORSE = Limit(
    2.0,
    "times the training loss",
    "in the first two epochs: of 79 healthy recordings one lay above",
)
EVALUATES_BETTER = Limit(
    0.5,
    "times the training loss",
    "in the first two epochs: of 79 healthy recordings two lay under it",
)
LAST_BITS = Limit(1e-6, "relative difference", "rounding in another order differs by less")
ONE_ANSWER = Limit(0.99, "share of the answers", "one class for 99 of 100 samples")
ANSWERS_TO_TELL = Limit(100, "answers", "99 % of fewer is a matter of one sample")

# time and memory
WAITING = Limit(0.5, "share of a step", "half of the time: the data set the pace")
WAITING_MS = Limit(2.0, "ms", "shorter waits are the loop's own Python")
MEMORY_GROWTH = Limit(
    0.15,
    "share of the memory after a third of the run",
    "caches settle in the first third: 480 healthy recordings grew by 0.028 at most",
)
MEMORY_GROWTH_MB = Limit(64.0, "MB", "smaller growth is the allocator's")
STEADILY = Limit(
    0.9, "share of neighbouring tenths that rise", "memory in use goes up and down; a leak only up"
)
SLOWER = Limit(
    1.5,
    "times the step time before",
    "on a busy machine 5 % of 94 healthy recordings reached it: noise and order must agree too",
)

# curves that others have logged
LOGGED_TO_TELL = Limit(
    12,
    "logged values",
    "the first five against the last quarter; each often is the mean of many steps, so fewer are "
    "needed than of single losses",
)
