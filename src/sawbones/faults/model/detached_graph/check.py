"""A graph that is cut, so that a part of the model never gets a gradient

## What it sees
On deep steps, trainable parameters that an optimizer holds, whose layers ran, and which the loss
does not depend on, although values that they made went on: through detach, .data, .item(), numpy()
or a region without gradients. Fires when they have no gradient on any recorded step and a cut is
there; also when an optimizer has taken five steps, nothing that it holds had a gradient on any, and
its own steps cut what they use, whether its loss was recognised or not and whether its parameters
belong to a module or are bare tensors. Also a state that a layer hands to itself three times or
more in one sequence and that is detached each time, when gradients reach its last call alone and
every call has an input of its own: likely. A loss that is computed of such layers on every deep
step, and that backward does not depend on (overwritten by the next one, left out of the sum), is
likely. A loss that needs no gradient at all crashes in backward and is named by that. Also a draw
from a normal distribution of learned mean and spread, which hands no gradient back (sample() or
torch.normal where rsample() is meant), when learned layers go on from the sample to the loss and
nothing sets it against its own distribution. A term of a summed loss that reaches nothing which its
step updates, behind a cut of what that makes (a generator judged by `critic(fake.detach())`, a
penalty of values without gradients), on every deep step that sums it up, is likely.

## Why it matters
Everything in front of the cut stays as it was initialised.

## Looks like
Training runs; the loss falls a little, as far as the layers after the cut can take it.

## Example
    features = encoder(x).detach()
    loss = criterion(head(features), y)

## Use instead
    features = encoder(x)
    loss = criterion(head(features), y)

## Confirm it
The graph itself is the proof: walking it from the loss reaches no parameter in front of the cut.

## False alarms
Truncated backpropagation detaches a state whose layers are reached by the newer steps, and leaves
several steps connected or gives each a loss; fixed points and refinements give every call the same
input. Target networks, teachers and frozen backbones are not in the optimizer, or not trainable.
The discriminator's step of a GAN detaches the generator, which has its own step. A head whose
output no loss uses is unused, not cut: no cut follows it, and no loss is computed of it. A loss
that is only logged comes from layers that another loss trains. Two optimizers that share one
backward pass both step on it, and what a term reaches is not cleared in between; a loss that is
detached itself is shown, not trained on. Policy gradients and straight-through estimators sample
without gradients on purpose: their sample meets the mean or spread again (log_prob, z + (q -
z).detach()).

## References
`torch.tensor(output)`, `.data` and `.item()` inside of a model are the usual ways to lose a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.evidence import NothingToJudge, context, counted, exact, finding
from sawbones.evidence.limits.loss import STEPS_AGREEING
from sawbones.schema import DeepStep, Finding, Fix, Op, Run, Site
from sawbones.stats.cut_sequences import cut_sequences
from sawbones.stats.dropped_losses import dropped_losses
from sawbones.stats.loss_calls import as_site
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate
from sawbones.trace.operators import FORMING

NEEDS = ("deep", "tensor_statistics")
EXPLAINS = (
    "optimizer.lr-too-low",
    "model.frozen-params",
    "model.vanishing-gradients",
    "optimizer.missing-params",
)
EXPERIMENT = None
_DETACHING = ("detach", "numpy", "data", "detach_", "item", "tolist", "__array__")
MIN_TURNS = 5  # steps of an optimizer: before, a part may not have been needed yet
_FRESH = frozenset({"tensor", "as_tensor", "from_numpy", "requires_grad_", "Variable"})


def check(run: Run) -> Iterator[Finding]:
    steps = [deep for deep in run.deep if deep.losses or deep.unreached]
    taken = [int(i) for i in run.steps.get("optimizer", ())]
    # An optimizer whose parameters get no gradient is seen without knowing its loss.
    if not steps and not any(taken.count(i) >= MIN_TURNS for i in set(taken)):
        raise NothingToJudge(
            f"no loss was recognised on a deep step, and no optimizer took {MIN_TURNS} steps"
        )
    found = (
        [*_never_reached(run, steps)]
        or [*_starved_optimizer(run, taken)]
        or [*_loss_thrown_away(run, steps)]
    )
    found = found or [*_forgetting(steps)] or [*_term_without_effect(run, taken)]
    yield from found or _blind_draw(run)


def _never_reached(run: Run, steps: list[DeepStep]) -> Iterator[Finding]:
    never = _never(run, steps)
    cut = next((c for deep in steps for c in _cuts(run, deep, never)), None) if never else None
    if cut is None:
        return
    total = sum(t.requires_grad and t.optimizer >= 0 for t in run.tensors)
    site, switched = as_site(cut.get("site")), as_site(cut.get("switched"))
    what = f"{cut.get('name')} at {site} takes out of the graph"
    if switched:
        what = f"gradients are switched off at {switched} for"
    yield finding(
        f"The graph is cut: {len(never)} parameters in front of it never get a gradient",
        locate(switched, site),
        (
            exact(
                f"{len(never)} of {total} trained parameters have no gradient on any step "
                f"({', '.join(sorted(never)[:3])}, ...)",
                len(never),
                signal="tensor_statistics",
                steps=[d.step for d in steps[:5]],
            ),
            context(f"{what} what they make", signal="deep", steps=(steps[0].step,)),
        ),
        Fix(
            "Remove the cut (detach, .data, .item, numpy, no_grad) on the way from these "
            "layers to the loss."
        ),
    )


def _starved_optimizer(run: Run, turns: list[int]) -> Iterator[Finding]:
    """One optimizer of several steps, and nothing that it holds of a model ever gets a gradient:
    what that makes, perhaps in an earlier step, is taken out of the graph on the way to its loss.
    """
    without = _without_gradient(run)
    # what is in none of the models that ran makes nothing that could be cut off
    of_models = [t for t in run.tensors if t.in_model] or run.tensors
    for optimizer in run.optimizers:
        index = optimizer.index
        held = [t for t in of_models if t.requires_grad and t.optimizer == index]
        mine = [d for d in run.deep if d.step < len(turns) and turns[d.step] == index]
        cuts = [
            (as_site(cut.get("site")), deep.step)
            for deep in mine
            for cut in deep.probes.get("cuts") or ()
            if cut.get("name") in _DETACHING
        ]
        sites = [site for site, _ in cuts if site is not None]
        if not held or not sites or turns.count(index) < MIN_TURNS:
            continue
        if any(t.name not in without for t in held):
            continue
        yield finding(
            f"The graph is cut: none of the {len(held)} parameters of {optimizer.cls} gets a "
            "gradient",
            locate(sites[0], optimizer),
            (
                exact(
                    f"{len(held)} parameters ({held[0].name}, ...) are stepped "
                    f"{turns.count(index)} times and have no gradient on any step",
                    len(held),
                    signal="tensor_statistics",
                    steps=[d.step for d in mine[:5]],
                ),
                context(
                    f"what they make is taken out of the graph at {sites[0]}",
                    signal="deep",
                    steps=[step for _, step in cuts[:1]],
                ),
            ),
            Fix(
                "Remove the cut (detach, .data, .item, numpy) in the step that is to train them; "
                "keep it where the other model is trained."
            ),
        )
        return


def _loss_thrown_away(run: Run, steps: list[DeepStep]) -> Iterator[Finding]:
    """A loss is computed of layers that nothing else trains, and no backward pass depends on it:
    the next one took its name, or it was left out of the sum.
    """
    never = _never(run, steps)
    layers = {name.rpartition(".")[0] for name in never}
    dropped = [dropped_losses(deep, layers) for deep in steps] if layers else []
    sites = [{d.call.site for d in found} for found in dropped]
    always = set.intersection(*sites) if sites else set()
    own = [d for d in (dropped[0] if dropped else ()) if d.call.site in always]
    lost = {n for n in never if any(n.rpartition(".")[0] in d.layers for d in own)}
    if not lost:
        return
    # Where the losses are joined, if they get that far, rather than where each is computed.
    joined = [d.last.site for d in own if d.last is not None and d.last.site is not None]
    calls = locate(*(d.call.site for d in own))
    words = f"{len(lost)} parameters that only it trains never get a gradient"
    yield finding(
        f"A loss is computed and thrown away: {words}",
        locate(*joined[:1], *calls)[:4],
        (
            exact(
                f"{len(lost)} trained parameters have no gradient on any step "
                f"({', '.join(sorted(lost)[:3])}, ...)",
                len(lost),
                signal="tensor_statistics",
                steps=[d.step for d in steps[:5]],
            ),
            context(
                f"backward does not depend on the loss at {calls[0]}" if calls else "",
                signal="deep",
                steps=(steps[0].step,),
            ),
        ),
        Fix("Add all losses up before backward: total = total + loss, not total = loss."),
        # one that joins the sum later in a longer run looks the same
        at_most="likely",
    )


def _term_without_effect(run: Run, turns: list[int]) -> Iterator[Finding]:
    """One of several terms that are summed up to a loss trains nothing that its step is for, as
    what those parameters made was cut off in front of it: on every deep step that sums it up.
    """
    cut: dict[tuple[Site | None, int], list[tuple[int, Mapping[str, Any]]]] = {}
    known = [deep for deep in run.deep if deep.step < len(turns)]
    for deep in known:
        for term in deep.probes.get("cut_terms") or ():
            if _has_no_effect(run, term, turns, deep.step):
                line = (as_site(term.get("site")), turns[deep.step])
                cut.setdefault(line, []).append((deep.step, term))
    for (site, turn), found in cut.items():
        steps = sorted({step for step, _ in found})
        own = [deep for deep in known if turns[deep.step] == turn]
        if any(deep.step not in steps and any(op.site == site for op in deep.ops) for deep in own):
            continue  # at other steps it trains what it is for
        term = found[0][1]
        at, switched = as_site(term.get("cut_at")), as_site(term.get("switched"))
        what = f"{term.get('cut')} at {at}"
        what = f"gradients switched off at {switched}" if switched else what
        names = ", ".join(str(name) for name in term.get("names", ()) if name)
        yield finding(
            "A term of the loss is cut off from what it is to train",
            locate(switched, at, site),
            (
                counted(
                    f"on all {len(steps)} deep steps that sum it up the term at {site} gives no "
                    f"gradient to anything that the step updates: {what} takes out of the graph "
                    f"what {names or 'these parameters'} made",
                    len(steps),
                    len(steps),
                    STEPS_AGREEING,
                    signal="deep",
                    steps=steps[:5],
                ),
            ),
            Fix(
                "Compute this term of the value itself, without the cut, in the step that is to "
                "train what made it; keep the cut where the other model is trained."
            ),
            # a term may be summed up only to be shown
            at_most="likely",
        )
        return


def _has_no_effect(run: Run, term: Mapping[str, Any], turns: list[int], step: int) -> bool:
    """It was to reach what this step's optimizer holds and does not; and what it does reach is
    cleared before that is stepped.
    """
    turn = turns[step]
    trains = set(term.get("trains", ()))
    if turn in trains or turn not in term.get("lost", ()):
        return False
    return all(index < 0 or _is_cleared(run, index, turns, step) for index in trains)


def _is_cleared(run: Run, index: int, turns: list[int], step: int) -> bool:
    """Whether an optimizer's gradients are cleared between the backward pass of a step and its own
    next step: two that share one backward pass step one after the other.
    """
    own = next((i for i in range(step + 1, len(turns)) if turns[i] == index), None)
    if own is None:
        return False
    steps = [e.seq for e in run.of_kind("step") if e.step == own]
    passes = [e.seq for e in run.of_kind("backward") if e.step == step]
    if not steps or not passes:
        return False
    return any(
        max(passes) < e.seq < min(steps) and e.data.get("optimizer", index) in (index, None)
        for e in run.of_kind("zero_grad")
    )


def _forgetting(steps: list[DeepStep]) -> Iterator[Finding]:
    """A recurrent state that is cut at every step of a sequence, on all deep steps."""
    found = [next(cut_sequences(deep), None) for deep in steps if deep.losses]
    cut = found[0] if found else None
    if cut is None or None in found:
        return
    yield finding(
        "The state of a recurrence is cut at every step: nothing is learned of earlier inputs",
        locate(cut.cut, cut.layer),
        (
            exact(
                f"{cut.cut.name} at {cut.cut.site} cuts what {cut.layer.name} gives back to "
                f"itself: of its {cut.num_calls} calls only the last gets a gradient, and "
                f"{cut.num_inputs} inputs that the loss depends on are never learned from",
                cut.num_calls - 1,
                signal="ops",
                steps=[d.step for d in steps[:5]],
            ),
        ),
        Fix(
            "Detach the state between sequences, or every few dozen steps of a long one, not "
            "between the steps of one sequence."
        ),
        # gradients of one step, in a sequence without a memory to learn, may be meant
        at_most="likely",
    )


def _never(run: Run, steps: list[DeepStep]) -> set[str]:
    """Trained parameters whose layers ran, that no loss reaches and that have no gradient."""
    trained = _without_gradient(run)
    unreached = [set(deep.unreached) for deep in steps]
    return {
        name
        for name in (set.intersection(*unreached) if unreached else ())
        if any(own == name or own.endswith("." + name) or _tail(own) == name for own in trained)
    }


def _blind_draw(run: Run) -> Iterator[Finding]:
    """A sample that the rest of the model learns from, while what it was drawn from learns nothing
    of it.
    """
    steps = [deep for deep in run.deep if deep.losses]
    drawn = [
        (op.site, deep.step)
        for deep in steps
        for op in deep.ops
        if op.name == "normal" and _is_blind(deep, op)
    ]
    site = drawn[0][0] if drawn else None
    blind = {step for at, step in drawn if at == site}
    if site is None or blind != {deep.step for deep in steps}:
        return
    yield finding(
        "A sample is drawn without a gradient, so what it is drawn from does not learn from it",
        locate(site),
        (
            counted(
                f"on all {len(steps)} deep steps a normal draw at {site} takes a learned mean or "
                "spread out of the graph, and learned layers go on from the sample to the loss",
                len(steps),
                len(steps),
                STEPS_AGREEING,
                signal="ops",
                steps=[d.step for d in steps[:5]],
            ),
        ),
        Fix(
            "Draw so that gradients pass: rsample() instead of sample(), or mean + spread "
            "* torch.randn_like(mean)."
        ),
    )


def _is_blind(deep: DeepStep, draw: Op) -> bool:
    """The loss comes from the sample through learned layers, and nothing sets the sample against
    its own distribution.
    """
    graph = StepGraph(deep, with_no_grad=True)
    given = [v for v in draw.inputs if v.requires_grad and graph.maker(v, draw.index)]
    if not given or not draw.outputs or not draw.outputs[0].dtype.startswith(("float", "bfloat")):
        return False
    # with the mean and spread before they were given the shape of the sample
    own = {form.id for v in given for form, _ in graph.way(v, draw.index, FORMING)}
    sample, behind = {v.id for v in draw.outputs}, set[int]()
    for op in deep.ops:
        ids = {v.id for v in op.inputs}
        if op.index == draw.index or op.args.get("no_grad"):
            continue
        if ids & sample and ids & own:
            return False
        if ids & own:
            own |= {v.id for v in op.outputs if v.requires_grad}
        if ids & (sample | behind):
            behind |= {v.id for v in op.outputs if v.requires_grad}
            sample |= {v.id for v in op.outputs if not v.requires_grad} if ids & sample else set()
    return any(
        call.input.id in behind for call in deep.losses if call.facts.reaches_root is not False
    )


def _tail(name: str) -> str:
    """The name without the model that several top-level models put in front."""
    return name.split(".", 1)[1] if "." in name else name


def _without_gradient(run: Run) -> set[str]:
    """None, or zero to the bit (cleared in place), on every step that was measured."""
    gradients = run.statistics["grad_l2"]
    trained = [t for t in run.tensors if t.requires_grad and t.optimizer >= 0]
    return {t.name for t in trained if bool((gradients[:, t.index] <= 0).all())}


def _cuts(run: Run, deep: DeepStep, never: set[str]) -> list[Mapping[str, Any]]:
    """Cuts of learned values that no loss function or logging made, those that the loss uses
    first.
    """
    logging = {call.site for call in deep.losses} | {e.site for e in run.of_kind("backward")}
    # Where backward starts from a fresh leaf nothing at all is learned, and whatever left the graph
    # outside of the layers counts.
    whole = all(t.name in never for t in run.tensors if t.requires_grad and t.optimizer >= 0)
    fresh = {
        op.site
        for op in deep.ops
        if whole and op.name in _FRESH and any(v.requires_grad for v in op.outputs)
    }
    layers = {name.rpartition(".")[0] for name in never}
    found = []
    for cut in deep.probes.get("cuts") or ():
        site, used = as_site(cut.get("site")), cut.get("feeds_loss")
        inside = str(cut.get("module") or "")
        # Without gradients from the first layer on there is nothing learned in front: the layer's
        # own weights are what is cut.
        own = cut.get("no_grad") and used and inside in layers
        if site is None or site in logging or not (cut.get("learned_input") or own):
            continue
        if used or site in fresh or (inside and cut.get("name") in _DETACHING):
            found.append(cut)
    return sorted(found, key=lambda cut: not cut.get("feeds_loss"))
