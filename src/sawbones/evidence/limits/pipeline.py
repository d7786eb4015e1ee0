"""Limits of the faults between the data and the model."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

STEPS_SEEN_ON = Limit(
    0.6,
    "share of the deep steps that could show it",
    "most: a fault of the pipeline is in nearly every batch, an odd batch in few",
)
PADDED_POSITIONS = Limit(
    0.05,
    "share of all positions",
    "a twentieth: with less padding, what happens on it is lost among the other positions",
)

# pipeline.shared-rows
SHARED_LISTS = Limit(
    0.25,
    "share of the lists that are put together at one place",
    "rows that are copied share no memory: 0. The same observation several times at a restart is "
    "once in an episode; draws from a kept buffer that repeats itself do so nearly always",
)
SHARED_BUFFERS = Limit(
    4,
    "arrays that were written over and are several rows of a list",
    "one or two may be a list that is made of the present observation; kept ones add up",
)

# pipeline.augmentation
LOSS_FALL = Limit(
    0.15,
    "share of the first loss",
    "a run that learns at all falls further in 20 steps and more; noise of a mean loss is smaller",
)
REDRAWN_SAMPLES = Limit(
    0.25,
    "share of samples that differ when they are read twice",
    "a flip with probability 0.5 changes half; a quarter is what a rarer choice still changes",
)
KEPT_CORRELATION = Limit(
    0.5,
    "correlation of what the model gets with what the loader gave",
    "half: noise and brightness leave more, moved values less",
)
LABELS_LOST = Limit(
    0.25,
    "gain in labels told when all random choices are held",
    "several standard errors of a share of 100 probed samples, 0.05 at most; see also the loss",
    weak=0.15,
)
LOSS_LEFT = Limit(
    0.3,
    "of the loss of a constant answer",
    "a run that has learned its task is far below; half of that where two classes are mixed up",
    weak=0.15,
)
LABELS_TOLD = Limit(0.95, "share of labels told right", "all but a few: the task can be solved")
CLASS_MIXED_UP = Limit(
    0.7,
    "share of a class told right",
    "two classes that cannot be distinguished are right in half of the cases",
)
NUMBER_TOLD = Limit(
    0.3,
    "correlation of a number of the label with what inputs tell",
    "with 100 probed samples chance stays under 0.2 (two standard errors)",
)
NUMBER_KEPT = Limit(
    0.35,
    "of the correlation with all random choices held",
    (
        "about a third is left where a mirrored input tells the number with the wrong sign "
        "half the time"
    ),
)
MASKS_TURNED = Limit(
    0.2,
    "share of masks that fit better mirrored or turned",
    "a flip with probability 0.5 turns half of them; symmetric masks fit both ways",
)
MASK_FIT = Limit(0.3, "correlation of masks and pictures", "less, and no mask fits in any way")
MASK_FIT_GAIN = Limit(
    0.15,
    "correlation above that with masks of other pictures",
    "masks that fit any picture as well say nothing about how it is turned",
)

# pipeline.mask-mismatch
MASK_DISAGREES = Limit(
    0.02,
    "share of the positions",
    "a mask made from the ids agrees everywhere; 1 in 50 leaves room for special tokens",
)
POSITIONS_OFF = Limit(
    1.01,
    "positions per row",
    "EOS that doubles as PAD is off by one position in every row, and rounding",
)
MASK_RELATED = Limit(
    0.2,
    "share of the positions at which mask and padding agree, either way round",
    "a boolean mask has at least half; what has less is no mask of this padding",
)
MASK_IS_PREFIX = Limit(
    0.99,
    "share of rows that are on up to one place and off after it",
    "a padding mask is so in all rows",
)
MASK_IS_SCATTERED = Limit(
    0.8,
    "share of rows that are on up to one place and off after it",
    "words left out at random interrupt nearly every row",
)
VISIBLE_PADDING = Limit(1e-4, "share of the positions", "none, but for rounding of recorded shares")

# pipeline.no-shuffle
BATCH_ENTROPY = Limit(
    0.35,
    "of the entropy of all labels",
    "mixed batches of 8 rows and more have over 0.7; sorted ones one class, at borders two",
)
LABEL_ENTROPY = Limit(
    0.3, "nats", "with 8 % or less of a second class nothing can be said of its order"
)
CHANGES_PER_BATCH = Limit(
    0.5,
    "changes of the commonest label per batch",
    "half: samplers that compose batches on purpose change it with nearly every batch",
)
TARGETS_PER_BATCH = Limit(
    1.5,
    "losses per batch",
    "between one loss, which stands for its batch, and two, as in adversarial training",
)
DISTINCT_SAMPLES = Limit(
    0.5,
    "distinct samples per sample of a pass",
    "half: a pass that repeats its samples more often is no order of a data set",
)
BATCHES_IN_ORDER = Limit(
    0.8,
    "share of the batches",
    "sorted targets follow each other in all but the first batch of an epoch, random ones hardly",
)
BATCH_SPAN = Limit(
    0.3,
    "of the range of all targets",
    "a batch drawn at random spans most of it, a sorted one its share of the epoch",
)
BATCH_OVERLAP = Limit(
    0.05, "of the span of a batch", "equal targets may lie on both sides of a border"
)

# pipeline.padding-side
READS_ON_PADDING = Limit(
    0.15,
    "share of the padded rows",
    "EOS that doubles as PAD looks like padding in few rows, a wrong side hits nearly all",
)

# pipeline.padding-waste
WASTED_POSITIONS = Limit(
    0.6,
    "share of all positions",
    "up to 0.6 is usual for mixed lengths drawn at random",
)
NEEDED_POSITIONS = Limit(
    0.5,
    "share of all positions, with the better of two remedies",
    "half: a step then costs half of what it does",
)
POSITIONS_TO_GROUP = Limit(
    2048,
    "positions of a batch, in the middle",
    "with fewer, the fixed cost of a step outweighs what batches of one length would save",
)
OWN_WIDTH = Limit(
    0.6,
    "share of all positions, padded to the longest row of each batch",
    "chooses which of the two remedies is named first",
)

# pipeline.special-tokens
INSIDE_TEXTS = Limit(
    0.005,
    "share of the places inside of texts",
    "1 in 200: single stray markers lie below, the rarest letters of a text above",
)
HOLES_IN_TEXTS = Limit(
    0.6,
    "share of the places inside of texts that the loss ignores",
    "masked language models ignore 0.85, a shared id what one token makes up",
)
FILLED_ENDS = Limit(
    0.2,
    "share of rows with several of the id at their end",
    "an id that texts merely end in comes once",
)
TARGETS_COPIED = Limit(
    0.9,
    "share of the targets that are tokens of the input",
    "a language model's are nearly all; labels of another kind coincide by chance",
)
TERMINATED = Limit(
    0.95,
    "share of rows that end in the commonest id",
    "all but a few texts end in their terminator; letters make up a fifth at most",
)
MASKED_ENDS_ALIKE = Limit(
    0.8,
    "share of rows that end in the commonest id",
    "above it there is a terminator; the last letters of texts are spread over many ids",
)
OPEN_ENDS_ALIKE = Limit(
    0.5,
    "share of rows that end in the commonest id",
    "half: a terminator ends them all, ordinary last words none so often",
)
BEGIN_ALIKE = Limit(
    0.95,
    "share of rows that begin with one id",
    "BOS begins them all; pieces of a stream begin with anything",
)

# pipeline.starved
WAITING_SHARE = Limit(
    0.85,
    "share of the time of a step",
    "the model is idle for six seventh of it; below, what a busy machine adds may be the reason",
    weak=0.6,
)
WAITING_MS = Limit(
    60,
    "ms per step",
    "a shorter wait may come from a busy machine: then the measurement decides",
    weak=30,
)
BUSY_SHARE = Limit(
    0.5,
    "share of the time in which the process could have run",
    "there is twice as much work as cores: data and model both come late, and which of them is "
    "the slower one cannot be told",
)
LOW_WAIT_MS = Limit(10, "ms, lower quartile", "waits that only some steps have are no starvation")

# pipeline.tokenizer-mismatch
MOVED_ENTRIES = Limit(
    0.1, "share of the shared entries", "a few entries of their own is usual for special tokens"
)
ID_DISTANCE = Limit(
    0.2,
    "total variation of the ids of training and validation",
    "halves of one text stay under 0.1 with some thousand tokens",
)
RANK_DISTANCE = Limit(
    0.4,
    "of the distance of the ids, frequencies sorted",
    "a renumbering keeps the sorted frequencies, another topic changes them as well",
)
RENUMBERED_IDS = Limit(
    0.12,
    "total variation of the ids of training and validation",
    "that of two halves of one text is far smaller when there are 4000 tokens and more",
)
RENUMBERED_RANKS = Limit(
    0.12,
    "of the distance of the ids, frequencies sorted",
    "an eighth: with no vocabulary in sight the sorted frequencies have to agree closely",
)
NEWCOMER_KNOWN = Limit(
    0.1,
    "of the share of the commonest new id in validation",
    "an id that is truly new comes from another topic, not from a renumbering",
)
FALL_OF_LOSS = Limit(
    0.1,
    "of the loss of the best constant answer",
    "codes fitted to rows of the same numbering gain nothing on other rows of theirs",
)
FALL_BEYOND = Limit(
    6,
    "standard errors by which the loss falls on rows that had no part in the search",
    "one comparison for each run: four would do, were the rows independent for certain",
)
FREQUENCIES_BACK = Limit(
    0.5,
    "of the distance of the codes from those of training, once they are put back",
    "codes that only fit the answers, as where their meaning has drifted, stay as far apart",
)
LOST_ANSWERS = Limit(
    0.2,
    "fall of the accuracy from one evaluation to another, less three standard errors of both",
    "texts of another week cost some points; a model that reads other words loses most of them",
)
ANSWERED_IN_TRAINING = Limit(
    0.7,
    "share of right answers among those that the commonest class gets wrong",
    "the task was learned well: 85 % of two classes as common as each other, 78 % of four",
)
COMMONEST_ANSWER = Limit(0.75, "share of the answers", "above it a constant does nearly as well")
ABOVE_CHANCE = Limit(
    0.05,
    "share of right answers, one standard error of a share aside",
    "by-heart learning leaves more than that of a task so well learned",
)
UNKNOWN_TOKENS = Limit(
    0.08,
    "share of the tokens of validation that are one id",
    "UNK of a fitting vocabulary stays under 2 or 3 %",
)
UNKNOWN_IN_TRAINING = Limit(
    0.005, "share of the tokens of training", "an id that training knows is learned"
)
UNKNOWN_RATIO = Limit(
    0.05, "of its share in validation", "a twentieth: more would be an id of ordinary texts"
)

# pipeline.truncation
PILED_UP = Limit(
    0.08,
    "share of rows of exactly the longest length",
    (
        "natural lengths thin out towards the longest; three times as many as just below are "
        "asked, too"
    ),
)
PILE_OVER_BELOW = Limit(
    3,
    "times the mean number of rows at the four lengths below",
    "the spread of such counts is under twice their mean",
)
ALL_CUT = Limit(
    0.97,
    "share of rows at the limit",
    "above it there are no shorter rows to compare with",
)
MOST_CUT = Limit(
    0.9,
    "share of rows at the limit",
    "rows that do not begin alike may be blocks of a stream, with a few rests",
)
TEXTS_BEGIN_ALIKE = Limit(
    0.98,
    "share of rows that begin with one id",
    "texts that are each cut from their beginning begin with BOS, blocks of a stream do not",
)
EMPTY_AT_LIMIT = Limit(
    0.3,
    "share of rows at the limit without a target",
    "answers at the end of long samples are lost in a good part of them",
)
EMPTY_BELOW = Limit(
    0.05, "share of shorter rows without a target", "else samples have no target for another reason"
)
ENDS_ALIKE_BELOW = Limit(
    0.9, "share of shorter rows that end in one id", "a terminator closes nearly all"
)
CLOSED_AT_LIMIT = Limit(
    0.5,
    "share of rows at the limit that end in the terminator",
    "half: cut texts have it by chance, texts closed after the cut all",
)
ANSWERS_LOST = Limit(
    0.2,
    "share of right answers, shorter rows less rows at the limit",
    "three standard errors of a share of 50 rows",
)
ERRORS_AT_LIMIT = Limit(
    4,
    "times the share of wrong answers of shorter rows",
    "long texts are harder, but not that much",
)

# pipeline.worker-seed
DRAWN_AT_RANDOM = Limit(
    0.5,
    "share of samples that differ when they are read twice",
    "half: with fewer there is little that could repeat",
)
DRAWN_ALIKE = Limit(
    0.9,
    "share of samples that are equal",
    "one and the same stream gives all; independent draws of a rare choice agree in fewer",
)

# pipeline.uneven-ranks
SPARE_WORK = Limit(
    0.25,
    "share of the largest batch's work, in the middle step",
    "padded texts of random lengths leave a tenth to a fifth on two to eight ranks; a contiguous "
    "part of sorted ones leaves a third and more",
)
SAME_RANK_LARGEST = Limit(
    0.8,
    "share of the steps",
    "by chance each of n ranks has the largest in one of n steps, at most half of them",
)
ROWS_REACHED = Limit(
    0.5,
    "share of the rows of a training set that its sampler ever draws",
    "a sampler that is given the training part of a longer data set reaches more than half of it",
)
DRAWS_OF_A_ROW = Limit(
    2.0,
    "draws of one epoch over the different rows that were drawn in the whole run",
    "a sampler of k rows draws about k in an epoch: 1 without replacement, and no more with it once "
    "all k were met",
)
