"""Limits of the faults of optimizers, learning rates and schedules."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

# Weight decay

COUPLED_DECAY = Limit(
    0.01,
    "weight decay",
    (
        "coupled decay of 1e-5 to 5e-3 is common practice with Adam (5e-3 in papers on graphs); "
        "0.01 and more is copied from AdamW"
    ),
)
CHOSEN_DECAY = Limit(
    0.02,
    "weight decay, decoupled",
    "twice torch's default of 0.01 for AdamW: from here on it is somebody's choice",
)
GAIN_LOST = Limit(
    0.1,
    "share of a normalisation gain that decay alone takes over the run",
    "a tenth changes what the layer passes on; some hundredths are what learning moves a gain by",
)
SQUARED_MATRICES = Limit(
    0.8,
    "share of the model's matrices",
    "a penalty on the weights squares all of them; a head or an embedding may be left out",
)

# Size of the update

HEALTHY_UPDATE = Limit(
    1e-3,
    "update norm over parameter norm",
    "the usual rule of thumb, a thousandth of the weights per step; shown, not compared",
)
LARGEST_UPDATE = Limit(
    0.2,
    "update norm over parameter norm, at its largest",
    "a fresh Adam or RMSprop makes a first update of a tenth on small tensors; twice that is clear",
    weak=0.1,
)
UPDATE_BEFORE_TROUBLE = Limit(
    0.2,
    "update norm over parameter norm, median of the last five before the loss left",
    "a fifth of the weights at every step replaces them within five",
)
SMALL_UPDATE = Limit(
    5e-6,
    "update norm over parameter norm, at the median step",
    "two hundred thousand steps to move by the size of the weights: nobody waits for that; a tenth "
    "of the healthy thousandth is only a doubt",
    weak=1e-4,
)
NEGLIGIBLE_UPDATE = Limit(
    1e-5,
    "update norm over parameter norm, at the median step",
    "a hundredth of the healthy thousandth: below it a falling loss alone speaks for the run",
)
GRADIENT_SIZE = Limit(
    0.02,
    "gradient norm, at the median step",
    "without a gradient to speak of it is not the LR that is too small",
    weak=1e-4,
)

# What the loss does, in units of the first loss

LOSS_RISES = Limit(
    0.5,
    "of the first loss, above it at the end",
    "half: noise of a run that stays where it began is far smaller",
)
LOSS_SHOOTS_UP = Limit(
    1.0,
    "of the first loss, above it at the peak",
    "double of what a model pays that knows nothing",
    weak=0.4,
)
LOSS_COMES_DOWN = Limit(
    0.6,
    "of the first loss, below it at the end",
    "a run that has lost more than half of its loss has recovered from a peak",
)
HEADWAY = Limit(
    0.15,
    "of the first loss, below it at the end",
    "a run of a usual LR loses more than that in a few dozen steps, except on pure noise",
)
HARDLY_MOVED = Limit(
    0.08,
    "of the first loss, below it at the end",
    "in fifty steps or more; half of what counts as headway for a high LR",
)
NOT_MOVED = Limit(
    0.03,
    "of the first loss, below it at the end",
    "about the noise of a mean over a fifth of a short run",
)

# Schedules

RATE_RAISED = Limit(
    1.5,
    "peak LR over the optimizer's own",
    "a schedule that raises does so by 10 or more; ranks lines only",
)
STILL_RISING = Limit(
    1.3,
    "last LR over that of the middle step",
    "a straight warm-up doubles from the middle to the end",
)
RARE_MOVES = Limit(
    0.34,
    "moves per step that was taken or planned",
    "once per epoch of three steps or more",
)
SAME_LENGTH = Limit(
    1.25,
    "planned moves over steps, or its inverse",
    "the plan counts steps, give or take dropped batches and rounding of epochs",
)
EPOCH_COUNT = Limit(
    0.2,
    "relative difference of planned moves and epochs",
    "the plan counts epochs, give or take a warm-up",
)
PLAN_OVERRUN = Limit(
    1.5,
    "moves over planned moves",
    "halfway back up the cosine; a few steps too many at the end do no harm",
)
METRIC_FALLS = Limit(
    0.1,
    "of the first value",
    "a value that falls by a tenth with the training loss is a loss, not a score",
)
EVEN_RISE = Limit(
    0.3,
    "relative difference of the rises of an LR",
    "a straight line has equal rises; a cosine or an exponential differs by more than half",
)
WARM_UP_REACHED = Limit(
    0.6,
    "LR reached over the LR that was meant",
    "a warm-up cut off in its last third still trains with about the LR that was meant",
)
NEGLIGIBLE_RATE = Limit(
    1e-4,
    "LR over its peak",
    "a ten-thousandth of the peak moves nothing; a cosine is below it for 0.6 % of its length",
)
NEGLIGIBLE_STEPS = Limit(
    0.33,
    "share of the run",
    "a third of the run without learning; healthy schedules end there in their last percent",
)
RISING_STEPS = Limit(
    0.95,
    "share of the steps",
    "all but one in twenty: rounding gives equal rates now and then",
)
DESERTED_STEPS = Limit(
    0.2,
    "share of an optimizer's steps",
    "a phase in which it rests, such as the turn of another network, is shorter or comes back",
)

# Update rules

USUAL_RATES = (0.9, 0.999, 0.99)  # of moving averages, where the source names none
USUAL_EPS = 1e-8
LEAST_RATE = Limit(
    0.3,
    "decay rate of a moving average",
    "no optimizer in use forgets more than two thirds in one step; smaller numbers are LRs",
)
RULE_FITS = Limit(
    0.005,
    "part of the change that the rule leaves unexplained",
    "rounding of float32 values whose change is a thousandth of them (2**-23 / 1e-3), times 40",
)
ROUNDED_CHANGE = Limit(
    0.03,
    "part of the change that is rounding",
    "where a thirtieth is rounding, right and wrong rules cannot be distinguished to 2 %",
)
RULE_MISSED = Limit(
    0.02,
    "part of the change that the nearest right rule leaves unexplained",
    "four times what counts as a fit",
)
SAME_FACTOR = Limit(
    0.03,
    "relative difference of two factors",
    "known wrong factors (the LR, the momentum, 1 - beta) differ from 1 by at least a tenth",
)
RATE_IS_NOT_ONE = Limit(
    0.1,
    "distance of the LR to 1",
    "at an LR near 1, applied twice and applied once are the same",
)
LARGEST_BEFORE = Limit(
    1e6,
    "largest value or gradient before the step",
    "far from the end of float32 (3e38): a square of it does not overflow",
)

# Betas, eps and momentum

EPS_OVER_GRADIENT = Limit(
    10.0,
    "eps over the root mean square of the gradients, at the median step",
    "the update is lr * m / (sqrt(v) + eps): from here on less than a tenth of the rate is left",
)
CHOSEN_EPS = Limit(
    1e-5,
    "eps",
    "defaults lie between 1e-10 and 1e-6, half precision is given up to 1e-5; more is a choice",
)
SETTLING_BETAS = Limit(
    1.0,
    "square of beta1 over the root of beta2",
    "the condition under which Adam's convergence is shown; defaults give 0.81",
)
MOMENTUM_MEMORY = Limit(
    5.0,
    "steps that momentum remembers over the steps of the run",
    "an average that never comes near its own length; 0.9 remembers ten steps, 0.99 a hundred, and "
    "a short trial of a long recipe is no fault",
)
