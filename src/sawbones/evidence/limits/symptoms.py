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
    "a fall that chance brings about in one of 700 runs; under it a quarter gains less than 1 %",
)

# does-not-learn
STEPS_TO_TELL = Limit(
    40,
    "steps",
    "the last quarter then has ten losses, the fewest whose block error means anything",
)
GAIN_OVER_CONSTANT = Limit(
    0.04,
    "share of the constant answer's loss",
    "healthy runs end 10 % and more below it; runs on shuffled labels stay within 2 %",
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
    "above both the start and the constant answer by as much: a tenth is beyond a warm-up's bump",
)
EXPLODES = Limit(
    10.0,
    "times the loss at the start",
    "objectives of reinforcement learning and annealed sums rise too, by small factors",
)
WEIGHTS_EXPLODE = Limit(
    10.0,
    "times the weights at the start",
    "trained weights grow by less than half; only a runaway makes them ten times as large",
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
HITS_OVER_COMMONEST = Limit(
    0.02, "share of the answers", "one in fifty above the commonest class, by the upper end"
)

# learns-slowly
SLOW_GAIN = Limit(
    0.1,
    "share of the constant answer's loss",
    "healthy runs of 100 steps have gained more than a third",
)
STEPS_FOR_PACE = Limit(100, "steps", "shorter runs are smoke tests: their pace says nothing")

# the shapes of curves
SPIKE = Limit(10.0, "robust deviations", "as loop.loss-spike: ordinary noise stays under eight")
SPIKE_HEIGHT = Limit(2.0, "times the level before", "at least doubled: a ripple at the end is none")
STEPS_BEFORE_SPIKE = Limit(10, "steps", "the first steps of any run leap")
EPOCHS_TO_COMPARE = Limit(4, "epochs", "three boundaries: fewer may agree by chance (1 in 4)")
STEPS_PER_EPOCH = Limit(8, "steps", "a fifth of an epoch has then two losses")
TOOTH = Limit(
    0.3,
    "share of the loss level",
    "jumps at each boundary; a smaller last batch or window makes up to a quarter of it",
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
    "a hundredth within 30 steps: real tasks do not give in so soon",
)
EVALUATES_WORSE = Limit(
    2.0, "times the training loss", "twice the training loss before anything can be memorised"
)
EVALUATES_BETTER = Limit(
    0.5, "times the training loss", "dropout and augmentation cost training less than half"
)
LAST_BITS = Limit(1e-6, "relative difference", "rounding in another order differs by less")
ONE_ANSWER = Limit(0.99, "share of the answers", "one class for 99 of 100 samples")
ANSWERS_TO_TELL = Limit(100, "answers", "99 % of fewer is a matter of one sample")

# time and memory
WAITING = Limit(0.5, "share of a step", "half of the time: the data set the pace")
WAITING_MS = Limit(2.0, "ms", "shorter waits are the loop's own Python")
MEMORY_GROWTH = Limit(
    0.15, "share of the memory after a third of the run", "caches settle within the first third"
)
MEMORY_GROWTH_MB = Limit(64.0, "MB", "smaller growth is the allocator's")
STEADILY = Limit(
    0.9, "share of neighbouring tenths that rise", "memory in use goes up and down; a leak only up"
)
SLOWER = Limit(1.5, "times the step time before", "half as long again; machines share less")
