"""Limits of the faults of the training loop."""

from __future__ import annotations

from sawbones.evidence.limit import Limit
from sawbones.stats.divergence import FAR_LOSS, FAR_NORM

UNCLEARED_PARAMETERS = Limit(
    0.5,
    "share of an optimizer's parameters",
    "half: a loop that clears clears all of them; heads that are idle for a while may keep theirs",
)
UNCLEARED_STEPS = Limit(
    0.9,
    "share of steps",
    "accumulation clears at every n-th step, n >= 2, so its share is at most one half",
)
GRAPHS_KEPT = Limit(
    0.8,
    "share of the graphs made",
    "a graph lives until its loss is rebound: healthy loops keep one or two of hundreds",
)
GRAPHS_RELEASED = Limit(
    0.5,
    "share of the most that were kept",
    "half of them gone later: they were collected for a purpose and let go",
)
GRAPH_SITES = Limit(
    0.3,
    "share of the graphs made",
    "a line that made fewer than a third of them is not the loop's own; ranks lines only",
)

# The order of events in a step

STEPS_OUT_OF_ORDER = Limit(
    0.8,
    "share of the steps, clips or epoch borders that could show it",
    "a loop is written once, so a wrong order shows at every step; a fifth is left for first, "
    "last and skipped steps",
)
STEADY_WINDOWS = Limit(
    0.95,
    "share of the steps",
    "windows of one length throughout, but for the last of the run: 1 step in 20",
)
UNDIVIDED_LOSS = Limit(
    1e-3,
    "relative difference of a backward pass's root and the mean loss",
    "rounding of a float16 loss (2**-10); a loss divided by 2 or more is off by at least 0.5",
)
MICROBATCHES_TO_TELL = Limit(
    3,
    "micro-batches of a step",
    "of 2 a loss with the weight one half, as in half a squared error, has the same effect",
)
SAME_SCALAR = Limit(
    1e-6,
    "relative difference",
    "a few roundings of float32 (2**-23 each): two records of one number",
)
ROOT_IS_LOSS = Limit(
    1e-5,
    "relative difference of a backward pass's root and a loss",
    "rounding of float32 (2**-23) over the few terms that a loss is put together from",
)
LOSS_IS_DIVIDED = Limit(
    0.9,
    "root of the backward pass over the mean loss",
    "divided by 2 it is 0.5; above 0.9 it is the loss itself with a small term; ranks lines only",
)
WHOLE_NUMBER = Limit(
    0.01,
    "distance to the next whole number",
    "a quotient of two float32 values is rounded far finer; ranks lines only",
)

# Clipping

CLIP_EXCEEDED = Limit(
    1.001,
    "times the limit of the clip",
    "rounding of a norm in half precision (2**-10)",
)
CLIP_SHRINKS = Limit(
    0.999,
    "norm after over norm before",
    "rounding of a norm in half precision (2**-10): above it nothing was scaled",
)
CLIPPED_GRADIENT = Limit(
    0.02,
    "relative difference of two norms",
    "one is measured, the other comes from mean and spread: both are rounded for the record",
)
CLIPPED_TENSORS = Limit(
    0.4,
    "share of the tensors with a gradient",
    "a clip scales all of them; some are missed where two tensors have one shape",
)
CLIPS_ACTIVE = Limit(
    0.5,
    "share of the clips",
    "half: a limit that is seldom reached changes little, whatever it is",
)
EFFECTIVE_CLIP = Limit(
    0.02,
    "norm of the gradient that a clip leaves",
    "a limit of 1 at a loss scale of 50 or more; clips of healthy runs lie at 0.1 to 10",
)
SMALLEST_CLIP = Limit(
    1e-3,
    "norm of the gradient",
    "nobody asks for a limit this small: a constant norm below it is max_norm / scale",
)
CLIP_FOLLOWS_SCALE = Limit(
    1e-3,
    "spread of limit / scale over its largest",
    "rounding of half precision (2**-10): the script multiplies its limit by the scale",
)
PINNED_NORM = Limit(
    1e-3,
    "relative difference of norm times scale to its median",
    "rounding of half precision (2**-10); an unclipped norm varies by tens of percent",
)

# Float16

ZERO_GRADIENTS = Limit(
    0.3,
    "share of the gradient elements",
    "a third of the values was lost in the case of Micikevicius et al. (2018), figure 3; ReLU and "
    "dropout also give zeros, so a trial decides",
    weak=0.03,
)
LARGE_TENSOR_ZEROS = Limit(
    0.01,
    "share of one large tensor's gradient elements",
    "float32 gradients of a dense layer are hardly ever exactly zero; a trial decides",
)
SMALL_PEAK = Limit(
    1e-3,
    "largest gradient element of the median tensor",
    "float16 ends at 6e-8: values a ten-thousandth of the peak are lost from here down",
)
HALF_ELEMENTS = Limit(
    0.5,
    "share of the trained elements",
    "half: the model is trained in that type, not a single layer of it",
)
UPDATE_KEPT = Limit(
    0.5,
    "share of the asked update that arrives in the weights",
    "half: rounding to nearest loses all of an update below half a unit in the last place",
)
ADAM_UPDATE = Limit(
    0.3,
    "of the LR, per element",
    "Adam moves an element by about its LR at first and by a third of it under noisy gradients",
)

# Loss and gradient out of the ordinary

GRADIENT_LEAP = Limit(
    10.0,
    "times the median norm of the 20 steps before",
    "norms of healthy runs vary by a factor of 2 to 3 between neighbouring steps",
    weak=4.0,
)
LOSS_THROWN = Limit(
    50.0,
    "times the level of the loss before",
    "no batch of a trained model is as bad as that: a model that knows nothing pays about 10 times",
)
ORDINARY_UPDATE = Limit(
    0.05,
    "update norm over parameter norm",
    "healthy runs move weights by about 0.001 a step, and by up to 0.05 in their first steps",
)

# Ranks

RANK_GRADIENTS = Limit(
    1e-4,
    "relative difference of two ranks' gradient norms",
    "averaged gradients are equal bit for bit; norms of other summation order differ by 2**-23 "
    "times the root of the number of terms",
)
RANK_WEIGHTS = Limit(
    1e-5,
    "relative difference of two ranks' parameter norms",
    "the same rounding as of gradients, without their cancellation",
)
SUMMED_GRADIENTS = Limit(
    1.1,
    "times the mean length of the ranks' own gradients",
    "a mean of vectors is never longer than the mean of their lengths; a tenth for rounding and "
    "for tensors that were clipped in between",
)
LOCAL_GRADIENT = Limit(
    1e-9,
    "norm of a gradient",
    "below it a ratio to it says nothing",
)

# Checkpoints, files, memory, repeatability

CHECKPOINT_SUMS = Limit(
    1e-6,
    "of the sum of a tensor plus 1",
    "eight roundings of float32 (2**-23): the same values summed twice stay below it",
)
LARGE_BATCH = Limit(
    1.5,
    "times the elements of the median batch",
    "batches of one loader differ by their padding; half as much again is out of the ordinary",
)
RUNS_DIFFER = Limit(
    1e-5,
    "relative difference of two runs' losses",
    "sums in another order differ in the last bits: 2**-23 times the root of 10,000 terms",
)

# Spikes

FAR_SPIKE = Limit(
    100.0,
    "times the highest loss before",
    "a model that knows nothing pays about ten times what a trained one does: beyond that it is "
    "the batch",
)
BAD_BATCH_LOSS = Limit(
    FAR_LOSS,
    "times the highest loss before",
    "as for gradient leaps: with a gradient as far out, the batch and not the model",
)
BAD_BATCH_GRADIENT = Limit(
    FAR_NORM,
    "times the largest norm of the 20 steps before",
    "as for gradient leaps: norms of healthy runs vary by a factor of 2 to 3",
)
CALM_GRADIENT = Limit(
    4.0,
    "times the largest norm of the 20 steps before",
    "as GRADIENT_LEAP in its weak form: below it nothing announced the spike",
)
SPIKE_AFTERMATH = Limit(
    0.15,
    "of the first loss; of a spike that is far out, of the level before it",
    "steps after a spike that harmed nothing are back within the noise, a few per cent",
)
TROUBLE_BEFORE = Limit(
    0.5,
    "of the first loss, above it",
    "half: the run had left before the spike came",
)
SPIKE_STEPS = Limit(
    0.1,
    "share of the steps",
    "more than one step in ten is the run's own nature, not a few bad samples",
)
EQUAL_SPIKES = Limit(
    3.0,
    "highest spike over lowest",
    "one sample that comes again is about as bad each time",
)
FAR_VALUE = Limit(
    100.0,
    "times the usual reach of the input; or a number in the source",
    "far outside of anything that is normalised; ranks lines only",
)
WRITTEN_NUMBER = Limit(
    1e-4,
    "relative difference",
    "a number in the source, and the same after float32 or float16 conversion; ranks lines only",
)

# Scaler and schedule

SKIPPED_STEPS = Limit(
    0.15,
    "share of the steps",
    "a scaler that works skips one step in 2000; a few outliers stay well under a percent",
)
SEARCHING_STEPS = Limit(
    0.25,
    "share of the steps",
    "from 65536 a scale that fits is found after 16 halvings, not a quarter of the run",
)
NEAR_OVERFLOW = Limit(
    1e3,
    "largest float16 value of an operator",
    "float16 ends at 65504: a factor of 65 is left for other batches; ranks lines only",
)
PLAIN_ROOT = Limit(
    4.0,
    "times the sum of the losses",
    "a root that was scaled, by 16 at least, is larger",
)
SCHEDULE_MOVES = Limit(
    0.9,
    "moves per optimizer step",
    "a schedule that moves at every step has one move per step, but for the ends of the record",
)

# Modes, devices, buffers, shards

EVALUATION_MODE_STEPS = Limit(
    0.2,
    "share of the steps",
    "a phase that is meant, such as a last calibration, is shorter than a fifth of the run",
)
SYNCS_PER_STEP = Limit(
    8.0,
    "reads from the device per step",
    "loss, norm and accuracy are read by ordinary loops: 1 to 3; every read waits for the device",
    weak=3.0,
)
SAME_BATCHES = Limit(
    0.9,
    "share of the batches of two ranks",
    "ranks with parts of their own share none; a tenth is left for the ends of epochs",
)
BUFFERS_APART = Limit(
    0.05,
    "of the buffer's size; of a running mean, of the running deviation",
    "running statistics of parts of one data set differ by the root of 1 / samples, a percent or "
    "two",
)
ONE_FACTOR = Limit(
    1e-3,
    "spread of the factors of one rank's tensors over their largest",
    "rounding of half precision (2**-10): all were multiplied by one factor",
)
SHARD_FACTORS = Limit(
    0.01,
    "relative difference of two ranks' factors",
    "ten times the rounding of half precision: one norm gives all ranks one factor",
)
