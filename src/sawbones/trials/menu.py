"""The trials that people can ask for by name: `sawbones try lr=0.1 train.py`.

An item changes one thing about the program, runs it again from the same seed, and says what the
difference means: what it points at when the change matters, and what it clears when it does not.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass

from sawbones.schema import Finding, Run, Verdict
from sawbones.schema.errors import SawbonesError
from sawbones.trials import trial
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.side_by_side import compare

Act = Callable[[Bench, Run, float | None], Verdict]


class NoSuchTrial(SawbonesError):
    """A name that is not on the menu, or a value that it cannot take."""


@dataclass(frozen=True)
class Item:
    name: str
    line: str  # one line for --list
    layer: str  # what is cleared when it changes nothing
    act: Act
    if_confirmed: str  # what it means, in one sentence
    if_refuted: str
    value: float | None = None  # the default of `name=VALUE`; None: it takes none
    needs_baseline: bool = True  # False: the script need not run to its end first


@dataclass(frozen=True)
class Asked:
    """One trial as a person typed it."""

    item: Item
    value: float | None

    @property
    def shown(self) -> str:
        return self.item.name if self.value is None else f"{self.item.name}={self.value:g}"

    def run(self, bench: Bench, run: Run) -> Verdict:
        return self.item.act(bench, run, self.value)

    def meaning(self, verdict: Verdict) -> str:
        if verdict.outcome == "open":
            return "It could not be decided, so nothing follows from it."
        confirmed = verdict.outcome == "confirmed"
        return self.item.if_confirmed if confirmed else self.item.if_refuted


def _of_battery(name: str) -> Act:
    """A trial of the battery, asked by a person: there is no finding yet."""

    def act(bench: Bench, run: Run, value: float | None) -> Verdict:
        asked = Finding("", "likely", 0.0, "asked for", params={})
        return trial(name)(bench, asked, run)

    return act


def _remedied(label: str, remedy: str, parameter: str | None = None) -> Act:
    """The script again under one remedy: confirmed when its loss then ends clearly lower."""

    def act(bench: Bench, run: Run, value: float | None) -> Verdict:
        params = {} if parameter is None else {parameter: value}
        # One deep step, so that the symptoms can be looked for again.
        steps = run.num_steps or None
        cured = bench.rerun([Remedy(remedy, params)], max_steps=steps, deep_steps=(0, 5))
        pair = compare(run, cured)
        shown = label.format(value=value)
        if cured.ending.kind == "exception" and run.ending.kind != "exception":
            text = f"{shown} the script fails: {cured.ending.exception}: {cured.ending.message}"
            return Verdict(remedy, "open", text[:300])
        if pair.is_short:
            return Verdict(remedy, "open", f"{pair.steps} steps are too few to compare")
        outcome = "confirmed" if pair.is_better else "refuted"
        details = {"sigmas": pair.sigmas, **params}
        return Verdict(remedy, outcome, f"{shown} {pair}", pair.was, pair.now, details=details)

    return act


def _short(bench: Bench, run: Run, value: float | None) -> Verdict:
    asked = Finding("", "likely", 0.0, "asked for", params={"batches": int(value or 1)})
    return trial("short")(bench, asked, run)


ITEMS: tuple[Item, ...] = (
    Item(
        "short",
        "before a long run: a few batches, an evaluation, a checkpoint, a resume (short=4)",
        "the loop as a whole",
        _short,
        "Something breaks before the long run has even begun: mend it first.",
        "Everything that was reached works.",
        4.0,
        needs_baseline=False,
    ),
    Item(
        "overfit-one-batch",
        "train on the first batch alone: its loss should go towards 0",
        "model, loss and optimizer",
        _of_battery("overfit_one_batch"),
        "Model, loss and optimizer can learn one batch: look at the data, their order and labels.",
        (
            "Not even one batch is learned: look at the model, the loss or the optimizer, not "
            "the data."
        ),
    ),
    Item(
        "tiny-set",
        "train on the first four batches alone",
        "data order and labels",
        _of_battery("tiny_dataset"),
        "A little data can be fitted: what is wrong lies in the data or in generalising.",
        "Not even four batches are fitted: look at the model, the loss or the optimizer.",
    ),
    Item(
        "synthetic",
        "other data in the same shapes, known to be learnable (a linear teacher, copying)",
        "model, loss and optimizer",
        _of_battery("synthetic_task"),
        "Model, loss and optimizer learn another task: look at the data and the pipeline.",
        "A task that is known to be learnable is not learned: look at model, loss or optimizer.",
    ),
    Item(
        "lr",
        "multiply every learning rate (lr=0.1, lr=10)",
        "learning rate",
        _remedied("with {value:g} times the learning rate", "learning_rate", "factor"),
        "The size of the steps matters: another learning rate ends clearly lower.",
        "This factor of the learning rate gains nothing.",
        0.1,
    ),
    Item(
        "constant-lr",
        "every step at the learning rate that the optimizer was built with",
        "schedule",
        _remedied("without its schedule", "schedule_constant"),
        "The schedule keeps the loss up: look at its first value, its unit and its length.",
        "The schedule is not what keeps the loss up.",
    ),
    Item(
        "warm-up",
        "the learning rate rises over the first steps (warm-up=20)",
        "missing warm-up",
        _remedied("with a warm-up of {value:g} steps", "warm_up_added", "steps"),
        "The first steps are too large: give the run a warm-up.",
        "A warm-up gains nothing.",
        20.0,
    ),
    Item(
        "default-moments",
        "betas and eps at their defaults, momentum at most 0.9",
        "betas, eps and momentum",
        _remedied("with betas, eps and momentum as usual", "default_moments"),
        "Betas, eps or momentum do not fit the run.",
        "Betas, eps and momentum are not the cause.",
    ),
    Item(
        "default-init",
        "every layer of torch's own with torch's own initialisation",
        "initialisation",
        _remedied("with torch's own initialisation", "default_initialisation"),
        "The initialisation is what hurts.",
        "The initialisation is not the cause.",
    ),
    Item(
        "clip",
        "clip the norm of all gradients at every step (clip=1.0)",
        "exploding gradients",
        _remedied("clipped to {value:g}", "clip_on", "max_norm"),
        "Gradients explode: clipping them cures it. Find what makes them large.",
        "Large gradients are not what keeps the loss up.",
        1.0,
    ),
    Item(
        "zero-grad",
        "clear the gradients after every optimizer step",
        "gradients left over",
        _remedied("with gradients cleared after every step", "zero_grad_added"),
        "Gradients of earlier steps are left over: call zero_grad() once per step.",
        "No gradients are left over from earlier steps.",
    ),
    Item(
        "no-amp",
        "autocast off: everything in the model's own precision",
        "mixed precision",
        _remedied("without autocast", "autocast_off"),
        "Mixed precision is what hurts: scale the loss, or keep the failing part in float32.",
        "Mixed precision is not the cause.",
    ),
    Item(
        "float64",
        "the whole model in float64",
        "precision",
        _of_battery("float64"),
        "Precision is the cause: something overflows, underflows or cancels.",
        "Precision is not the cause.",
    ),
    Item(
        "loss-scale",
        "scale the loss during backward, as a GradScaler does",
        "underflow of gradients",
        _of_battery("loss_scale_on"),
        "Gradients are lost to half precision: use a GradScaler or bfloat16.",
        "No gradients are lost to half precision.",
    ),
    Item(
        "no-dropout",
        "all dropout off",
        "dropout",
        _of_battery("dropout_off"),
        "Dropout keeps the model from fitting: use less of it, or find where it hits too much.",
        "Dropout is not the cause.",
    ),
    Item(
        "no-decay",
        "all weight decay at 0",
        "weight decay",
        _of_battery("weight_decay_off"),
        "Weight decay holds the weights down: use less.",
        "Weight decay is not the cause.",
    ),
    Item(
        "train-mode",
        "every call with gradients in training mode",
        "train and eval mode",
        _of_battery("train_mode"),
        "The model trains in evaluation mode: call model.train() before training.",
        "Training runs in the right mode.",
    ),
    Item(
        "eval-mode",
        "every call without gradients in evaluation mode",
        "train and eval mode",
        _of_battery("eval_mode"),
        "The model is evaluated in training mode: call model.eval() before evaluating.",
        "Evaluation runs in the right mode.",
    ),
    Item(
        "shuffled-labels",
        "the targets of every batch in another order",
        "labels",
        _of_battery("shuffled_labels"),
        "The labels say nothing of the inputs, or nothing is learned from them.",
        "The real labels are worth something: the model learns from them.",
    ),
    Item(
        "zero-inputs",
        "inputs that say nothing: zeros, one token id for all",
        "use of the inputs",
        _of_battery("input_independent_baseline"),
        "The model does not use its inputs: it does as well without them.",
        "The model uses its inputs.",
    ),
    Item(
        "standard-inputs",
        "every input column at mean 0 and standard deviation 1",
        "scale of the inputs",
        _remedied("with standardised inputs", "input_standardised"),
        "The scale of the inputs matters: standardise them.",
        "The scale of the inputs is not the cause.",
    ),
    Item(
        "gradient-check",
        "own autograd functions, layers and losses against finite differences",
        "hand-written gradients",
        _of_battery("gradient_check"),
        "A gradient written by hand is wrong.",
        "Hand-written gradients agree with finite differences.",
    ),
    Item(
        "initial-loss",
        "the first loss against that of a model that knows nothing",
        "scale of the first outputs",
        _of_battery("loss_at_initialisation"),
        "The first loss is far from that of a model that knows nothing: look at the scale of the "
        "outputs, the reduction or the loss itself.",
        "The first loss is that of a model that knows nothing, as it should be.",
    ),
    Item(
        "one-large-batch",
        "the accumulated gradient against that of one large batch",
        "accumulation",
        _of_battery("accumulation_against_one_batch"),
        "Accumulation is not scaled like one large batch: divide the loss by the micro-batches.",
        "Accumulation adds up to one large batch.",
    ),
    Item(
        "same-seed",
        "the script a second time with the same seed, compared bit for bit",
        "repeatability",
        _of_battery("same_seed_twice"),
        "Two runs with the same seed differ: something random is not seeded.",
        "Two runs with the same seed agree bit for bit.",
    ),
    Item(
        "deterministic",
        "twice with deterministic algorithms",
        "non-deterministic kernels",
        _of_battery("deterministic_algorithms"),
        "A non-deterministic kernel makes runs differ.",
        "Kernels are not what makes runs differ.",
    ),
    Item(
        "resume",
        "stop after a save, start again, compare with the run that was never stopped",
        "checkpoints",
        _of_battery("resume_equivalence"),
        "A resumed run goes another way: something is missing from the checkpoint.",
        "A resumed run goes on exactly as if it had never stopped.",
    ),
    Item(
        "causality",
        "other tokens from the middle on: outputs before must not move",
        "causal mask",
        _of_battery("causality"),
        "Outputs depend on tokens after their own position.",
        "No output depends on later tokens.",
    ),
    Item(
        "padding",
        "the shortest example without its padding",
        "padding mask",
        _of_battery("padding_invariance"),
        "Padding changes the answer for real tokens.",
        "Padding does not reach the answer.",
    ),
    Item(
        "batch-independence",
        "another last example: the other answers must not move",
        "mixing of examples",
        _of_battery("batch_independence"),
        "Examples of a batch influence one another.",
        "Examples of a batch are independent.",
    ),
    Item(
        "positions",
        "tokens permuted: the answer should notice",
        "positional information",
        _of_battery("position_permutation"),
        "The order of the tokens does not reach the outputs.",
        "The order of the tokens reaches the outputs.",
    ),
    Item(
        "label-shift",
        "targets moved from 3 back to 3 ahead",
        "alignment of targets",
        _of_battery("label_shift_scan"),
        "The targets are shifted against the inputs.",
        "The targets are where they belong.",
    ),
    Item(
        "one-rank",
        "two ranks against one with the same global batch",
        "ranks",
        _of_battery("one_rank_against_two"),
        "Several ranks do not add up to one process.",
        "Two ranks give what one gives.",
    ),
)


def parse(text: str) -> tuple[Asked, ...]:
    """`overfit-one-batch,lr=0.1` as a person types it."""
    return tuple(_one(part.strip()) for part in text.split(","))


def _one(text: str) -> Asked:
    name, equals, given = text.partition("=")
    item = next((item for item in ITEMS if item.name == name), None)
    if item is None:
        known = [item.name for item in ITEMS]
        near = [n for n in known if name and name in n] or difflib.get_close_matches(name, known)
        hint = f" Nearest: {', '.join(near[:3])}." if near else ""
        raise NoSuchTrial(f"no trial {text!r}.{hint} All of them: sawbones try --list")
    if not equals:
        return Asked(item, item.value)
    if item.value is None:
        raise NoSuchTrial(f"{text}: {name} takes no value. Write: sawbones try {name} train.py")
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise NoSuchTrial(f"{text}: a number above 0 is needed, e.g. {name}={item.value:g}")
    return Asked(item, value)
