"""A value of a dtype that the operation does not take

## What it sees
The record of a crash: a layer whose weights have another dtype than its input, class labels that
are no whole numbers, targets that are whole numbers where the scores are not, an average or a
softmax of whole numbers, ids and indices that are floats, an array of Python objects. Fires when
shapes and devices fit and the dtypes do not, on the step of the crash.

## Why it matters
The script ends here.

## Looks like
RuntimeError: mat1 and mat2 must have the same dtype, expected scalar type Long but found Float, or
mean(): could not infer output dtype.

## Example
    x = torch.from_numpy(table)  # float64
    y = nn.Linear(5, 1)(x)

## Use instead
    x = torch.from_numpy(table).float()
    y = nn.Linear(5, 1)(x)

## Confirm it
Nothing is left to confirm: both dtypes are in the record.

## False alarms
Only an operation that was refused is looked at. Values on different devices, and shapes that do not
fit, are named by other faults.

## References
NumPy computes in float64, torch in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Assignment, Bound, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_origins import made_with_dtype, sites
from sawbones.stats.crash_shapes import (
    argument_names,
    broadcast_clash,
    misfit,
    product_clash,
    written,
)
from sawbones.stats.crashes import (
    Given,
    Refusal,
    crash,
    frame_of,
    layer_in_front,
    makers,
    names_of,
    refusal,
)

NEEDS = ("crash", "crash_record")
EXPLAINS = ("data.label-out-of-range",)
EXPERIMENT = None
_BY_CLASS = ("cross_entropy", "nll_loss")
_FLOATS_ONLY = (
    "mean",
    "std",
    "var",
    "norm",
    "softmax",
    "log_softmax",
    "normal_",
    "uniform_",
    "layer_norm",
    "batch_norm",
    "cosine_similarity",
    "nanmean",
    "logsigmoid",
    "sigmoid",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
)
_FROM_NUMPY = ("from_numpy", "as_tensor", "tensor", "Tensor", "FloatTensor")
_PRODUCTS = ("matmul", "mm", "bmm", "mv", "dot", "addmm", "linear", "conv1d", "conv2d", "baddbmm")
_CALLS = {
    "float32": "float()",
    "float64": "double()",
    "float16": "half()",
    "bfloat16": "bfloat16()",
    "int64": "long()",
}


_ONE_COLUMN = (
    "For one score per row and labels of 0 and 1, use nn.BCEWithLogitsLoss with labels.float() of "
    "the shape of the scores (nn.BCELoss after a sigmoid); or give the model a column per class."
)


@dataclass(frozen=True)
class Wrong:
    given: Given
    wanted: str  # dtype
    why: str
    advice: str = ""  # where another dtype would not mend it


def check(run: Run) -> Iterator[Finding]:
    call = refusal(run)
    if call is None:
        raise NothingToJudge("no operation of torch was refused")
    wrong = (
        _objects(call)
        or _layer(call)
        or _labels(call)
        or _targets(call)
        or _loss_weights(run, call)
        or _indices(call)
        or _whole_numbers(call)
        or _product(call)
        or _learned_integers(call)
    )
    if wrong is not None and call.handed_on and wrong.given.name == call.given[0].name:
        yield _handed(run, call, wrong)
    elif wrong is not None:
        yield _found(run, call, wrong)


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def _is_whole(dtype: str) -> bool:
    return dtype.startswith(("int", "uint", "bool"))


def _layer(call: Refusal) -> Wrong | None:
    """A layer with weights of one dtype and an input of another."""
    module = call.module
    if module is None or not call.tensors or not module.dtype or "," in module.dtype:
        return None
    given = call.tensors[0]
    if given.bound.device != module.device:
        return None
    if "num_embeddings" in module.settings:
        if _is_float(given.bound.dtype):
            return Wrong(given, "int64", f"{call.layer} looks rows up by whole numbers")
        return None
    fits = misfit(module, given.bound.shape) is None
    if fits and given.bound.dtype != module.dtype:
        return Wrong(given, module.dtype, f"the weights of {call.layer} are {module.dtype}")
    return None


def _labels(call: Refusal) -> Wrong | None:
    if call.name not in _BY_CLASS or len(call.tensors) < 2:
        return None
    scores, labels = call.tensors[:2]
    indices = len(labels.bound.shape) == len(scores.bound.shape) - 1
    if indices and labels.bound.dtype not in ("int64", "uint8"):
        if scores.bound.shape[1:2] == (1,):
            why = f"{call.layer} chooses among columns, and {scores.name} has only one"
            return Wrong(labels, "int64", why, _ONE_COLUMN)
        return Wrong(labels, "int64", f"{call.layer} takes one whole number per row as its label")
    same = labels.bound.shape == scores.bound.shape
    if same and _is_whole(labels.bound.dtype):
        return Wrong(labels, scores.bound.dtype, f"{call.layer} takes probabilities here")
    return None


def _targets(call: Refusal) -> Wrong | None:
    """Losses that subtract or multiply: both sides of one dtype."""
    module = call.module
    of_loss = module is not None and module.home.startswith("torch.nn.modules.loss")
    if not (of_loss or "loss" in call.name or call.name.startswith("binary_cross_entropy")):
        return None
    if call.name in _BY_CLASS or len(call.tensors) < 2:
        return None
    scores, target = call.tensors[:2]
    if scores.bound.shape != target.bound.shape:
        return None
    if _is_whole(scores.bound.dtype):
        return _whole_scores(scores)
    if scores.bound.dtype == target.bound.dtype:
        return None
    return Wrong(target, scores.bound.dtype, f"the scores are {scores.bound.dtype}")


def _loss_weights(run: Run, call: Refusal) -> Wrong | None:
    """Weights of classes or samples, which a loss keeps since it was built."""
    frame = frame_of(crash(run), call.name, "torch.nn.functional")
    scores = frame.values.get("input") if frame is not None else None
    if frame is None or scores is None or not _floating_tensor(scores):
        return None
    for name in ("weight", "pos_weight"):
        bound = frame.values.get(name)
        if bound is not None and bound.kind == "tensor" and bound.dtype != scores.dtype:
            built = call.module.built if call.module is not None else None
            named = argument_names(built, name) if built is not None else []
            said = [o.text for o in call.expression.operands if o.keyword == name]
            given = Given(next(iter((*named, *said)), name), bound)
            return Wrong(given, scores.dtype, f"the scores are {scores.dtype}")
    return None


def _whole_scores(scores: Given) -> Wrong:
    """A loss of positions or classes that were already chosen."""
    return Wrong(
        scores,
        "float32",
        f"a loss compares scores, and {scores.name} holds whole numbers: choices such as argmax "
        "gives, which have no gradient",
        f"Give the loss the scores themselves, before argmax or a conversion to whole numbers: "
        f"cross_entropy(scores, labels) for each of the choices. {scores.name}.float() would run, "
        "and train nothing.",
    )


def _indices(call: Refusal) -> Wrong | None:
    """x[i] with an i of floats, gather, index_select and embedding."""
    operands = call.expression.operands
    if call.expression.kind == "subscript":
        for operand in operands[1:]:
            if operand.bound is not None and _floating_tensor(operand.bound):
                return Wrong(Given(operand.text, operand.bound), "int64", "an index is whole")
    if call.name.startswith("scatter"):
        return _scattered(call)
    if call.name in ("gather", "index_select", "embedding", "one_hot", "take"):
        for given in call.tensors if call.name == "one_hot" else call.tensors[1:]:
            if given.bound.dtype != "int64" and not given.bound.requires_grad:
                return Wrong(given, "int64", f"{call.name} takes int64 indices")
        first = call.tensors[0] if call.tensors and call.name == "embedding" else None
        if first is not None and _is_float(first.bound.dtype):
            return Wrong(first, "int64", "embedding looks rows up by whole numbers")
    return None


def _scattered(call: Refusal) -> Wrong | None:
    """x.scatter_(axis, index, values): the index may be an expression that no name holds."""
    operands = [o for o in call.expression.operands[1:] if not o.bound or o.bound.kind != "number"]
    first = operands[0] if operands else None
    if first is None:
        return None
    bound = first.bound
    if bound is None:
        named = [call.frame.values.get(name) for name in names_of(first.text)]
        bound = next((b for b in named if b is not None and b.kind == "tensor"), None)
    if bound is None or not _floating_tensor(bound):
        return None
    name = next(iter(names_of(first.text)), first.text) if first.bound is None else first.text
    return Wrong(Given(name, bound), "int64", f"{call.name} takes int64 indices")


def _floating_tensor(bound: Bound) -> bool:
    return bound.kind == "tensor" and _is_float(bound.dtype)


def _whole_numbers(call: Refusal) -> Wrong | None:
    if call.name not in _FLOATS_ONLY or not call.tensors:
        return None
    given = call.tensors[0]
    if _is_whole(given.bound.dtype):
        return Wrong(given, "float32", f"{call.name} of whole numbers is no whole number")
    return None


def _product(call: Refusal) -> Wrong | None:
    """Matrix products take one dtype; arithmetic converts."""
    if call.name not in _PRODUCTS or len(call.tensors) < 2:
        return None
    a, b = call.tensors[:2]
    if a.bound.dtype == b.bound.dtype or a.bound.device != b.bound.device:
        return None
    fits = call.name in ("linear", "conv1d", "conv2d") or (
        product_clash(a.bound.shape, b.bound.shape) is None
        or broadcast_clash(a.bound.shape, b.bound.shape) is None
    )
    if not fits:
        return None
    wrong, right = (a, b) if b.bound.requires_grad or not _is_float(a.bound.dtype) else (b, a)
    return Wrong(wrong, right.bound.dtype, f"{right.name} is {right.bound.dtype}")


def _learned_integers(call: Refusal) -> Wrong | None:
    """Gradients of whole numbers: torch.tensor([1, 2], requires_grad=True)."""
    operands = call.expression.operands
    asks = any(o.keyword == "requires_grad" for o in operands) or call.name in (
        "requires_grad_",
        "Parameter",
    )
    if not asks:
        return None
    for operand in operands:
        bound = operand.bound
        if bound is None or operand.keyword:
            continue
        numbers = bound.items or (bound,)
        whole = bound.kind in ("sequence", "number") and all(
            n.kind == "number" and n.cls == "int" for n in numbers
        )
        if whole or (bound.kind == "tensor" and _is_whole(bound.dtype)):
            given = Given(operand.text, Bound(bound.kind, bound.cls, dtype=bound.dtype or "int64"))
            return Wrong(given, "float32", "only floating point values have a gradient")
    return None


def _objects(call: Refusal) -> Wrong | None:
    if call.name not in _FROM_NUMPY:
        return None
    for operand in call.expression.operands:
        bound = operand.bound
        if bound is not None and bound.kind == "array" and bound.dtype.startswith(("object", "<U")):
            why = "torch holds numbers, and this array holds Python objects or texts"
            return Wrong(Given(operand.text, bound), "float32", why)
    return None


def _found(run: Run, call: Refusal, wrong: Wrong) -> Finding:
    known = call.frame.values
    given, bound = _behind_expression(wrong.given, known), wrong.given.bound
    made = [
        a
        for a in (*makers(run, given.name), *_of_construction(call, given.name))
        if a.how != "loop" and _may_be(known.get(a.name), bound.dtype)
    ]
    root = next((a for a in made if set(a.calls) & {*_FROM_NUMPY, *_conversions()}), None)
    if wrong.wanted == "int64" and made and made[0].name == given.name:
        root = made[0]  # the column that is an index, not the table that it was taken from
    root = root or (made[0] if made else None)
    because = wrong.why
    if root is not None:
        because += f"; {root.name} comes from {root.text} (line {root.site.line})"
    where: list[Site | None] = [root.site if root is not None else None, call.frame.site]
    if root is not None:
        where += [a.site for a in makers(run, given.name) if a.name in root.reads and a.text]
    if root is None and run.ending.crash is not None:
        where = [call.frame.site]
    where = [*sites(made_with_dtype(run, wrong.given.name, bound.dtype)), *where]
    if bound.kind == "array":
        advice = f"{given.name}.astype('{wrong.wanted}')"
    elif bound.kind == "tensor":
        advice = f"{given.name}.{_CALLS.get(wrong.wanted, f'to(torch.{wrong.wanted})')}"
    else:
        advice = f"write {given.name} with decimal points, or dtype=torch.{wrong.wanted}"
    line = root.site.line if root is not None else call.frame.site.line
    called = call.layer or call.expression.text
    return explained(
        run,
        f"{given.name} is {bound.dtype} where {called} takes {wrong.wanted}",
        where,
        Fix(wrong.advice or f"Convert it where it is made (line {line}): {advice}."),
        expected=f"{wrong.wanted}: {wrong.why}",
        got=f"{bound.dtype} ({given.name}, {written(bound.shape)})",
        because=because,
        sizes=[Size(g.name, written(g.bound.shape), g.bound.dtype) for g in call.tensors[:3]],
        exactly=(2, 1),  # dtypes that meet
    )


def _behind_expression(given: Given, known: Mapping[str, Bound]) -> Given:
    """actions in place of actions.unsqueeze(1), where that has the dtype already."""
    names = [n for n in names_of(given.name) if n in known and n != given.name]
    same = [n for n in names if known[n].kind == "tensor" and known[n].dtype == given.bound.dtype]
    return Given(same[0], known[same[0]]) if len(names) == len(same) == 1 else given


def _of_construction(call: Refusal, name: str) -> list[Assignment]:
    """Lines that gave a name its value where the module was built."""
    built = call.module.built if call.module is not None else None
    return [a for a in built.assignments if a.name == name and a.text] if built is not None else []


def _handed(run: Run, call: Refusal, wrong: Wrong) -> Finding:
    """nn.Sequential hands on what the layer in front gives: no line of the user's holds it."""
    bound, module = wrong.given.bound, call.module
    assert module is not None
    front = layer_in_front(run, bound) or "the layer in front of it"
    built = module.built.site if module.built is not None else None
    return explained(
        run,
        f"{call.layer} is handed {bound.dtype} by {front} and takes {wrong.wanted}",
        (built, call.frame.site),
        Fix(
            f"Take {call.layer} out of the nn.Sequential, or put another layer in its place: "
            f"{front} gives {bound.dtype} of {written(bound.shape)}."
            if wrong.wanted == "int64"
            else f"Bring {call.layer} and {front} to one dtype where they are built."
        ),
        expected=f"{wrong.wanted}: {wrong.why}",
        got=f"{bound.dtype} ({written(bound.shape)}, from {front})",
        because="nn.Sequential gives each layer what the one in front of it returns",
        sizes=[Size(front, written(bound.shape), bound.dtype)],
        exactly=(2, 1),  # dtypes that meet
    )


def _may_be(known: Bound | None, dtype: str) -> bool:
    """A value that has the dtype in question, or no dtype at all."""
    return known is None or not known.dtype or known.dtype == dtype


def _conversions() -> set[str]:
    named = {call.removesuffix("()") for call in _CALLS.values()}
    return {*named, "to", "type", "astype", "int"}
