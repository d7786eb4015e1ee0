"""Of the lines that a value comes from, the one that made it what it is: the root of a crash.

Lines that only hand a value on are passed over. What is left first along the way back is where the
property in question was fixed: by a literal, a constructor, a slice, a cast, a computation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from sawbones.schema import CrashFrame, Origin, Run, Site
from sawbones.stats.crashes import crash, names_of

_MOVES = ("to", "cuda", "cpu", "clone", "detach", "contiguous", "pin_memory", "copy", "numpy")
_JOINS = ("stack", "cat", "concat", "concatenate", "list", "tuple", "next", "iter", "enumerate")
_FORMS = ("unsqueeze", "squeeze", "view", "reshape", "transpose", "permute", "flatten", "expand")
_WRAPS = ("from_numpy", "as_tensor", "array", "asarray", "tensor", "zip", "len", "range", "tqdm")
_HOLDS = ("DataLoader", "TensorDataset", "Subset", "random_split", "split", "chunk", "unbind")
# Calls whose result has the dtype of what they are given.
KEEP_DTYPE = frozenset({*_MOVES, *_JOINS, *_FORMS, *_WRAPS, *_HOLDS, "randperm"})
# Calls whose result has the sides of what they are given, or only more rows.
KEEP_SIDES = frozenset(
    {*_MOVES, *_JOINS, *_WRAPS, *_HOLDS, "float", "long", "double", "half", "randperm"}
)


def trace_of(run: Run, text: str) -> tuple[Origin, ...]:
    """The lines of an expression at the failing line; where that was not followed, those of the
    names in it.
    """
    known = {trace.subject: trace.lines for trace in crash(run).traces}
    if text in known:
        return known[text]
    return next((known[name] for name in names_of(text) if name in known), ())


def without(lines: Sequence[Origin], differs: Callable[[Origin], bool]) -> tuple[Origin, ...]:
    """The trace without the lines that cannot have given the property, and what feeds only them."""
    dropped: set[int] = set()
    for place, line in enumerate(lines):
        if line.parent in dropped or differs(line):
            dropped.add(place)
    return tuple(line for place, line in enumerate(lines) if place not in dropped)


def hands_on(line: Origin, keeps: frozenset[str]) -> bool:
    """A line that gives a value on as it is."""
    fixes = {"literal", "slice", "operator"} & set(line.parts)
    return line.how == "loop" or (not fixes and set(line.calls) <= keeps)


def maker(lines: Sequence[Origin], keeps: frozenset[str] = frozenset()) -> Origin | None:
    """The first line on the way back that does not only hand the value on. A call of the user's own
    code is gone into: what it returns stands behind it in the trace.
    """
    for place, line in enumerate(lines):
        entered = "user" in line.parts and any(o.how == "return" for o in lines[place + 1 :][:1])
        if line.how != "changed" and not entered and not hands_on(line, keeps):
            return line
    return None


def made_with_dtype(run: Run, text: str, dtype: str) -> Origin | None:
    lines = without(trace_of(run, text), lambda o: bool(o.dtype) and o.dtype != dtype)
    return maker(lines, KEEP_DTYPE)


def made_as_number(run: Run, text: str, value: float) -> Origin | None:
    """The line that computes or writes a number, of those that are known to have had it."""
    return maker([o for o in trace_of(run, text) if o.value == value])


def built_with(run: Run, name: str, value: float) -> Origin | None:
    """Where the number is written or computed that a layer was built with, if its constructor only
    hands on what it is given.
    """
    lines = trace_of(run, f"built {name}")
    return maker(without(lines, lambda o: o.value is not None and o.value != value))


def cut_out(run: Run, text: str) -> Origin | None:
    """The slice that a value was cut out by."""
    return next((o for o in trace_of(run, text) if "slice" in o.parts), None)


def brought_in(run: Run, *texts: str) -> Origin | None:
    """Where the program that is running made the data of a value, outside of its models: not in a
    function that other data come out of as well.
    """
    died = crash(run)
    running = {(f.site.file, f.site.function) for f in died.frames if f.user}
    models = {
        (inner.site.file, inner.site.function)
        for outer, inner in pairwise(died.frames)
        if inner.user and outer.home == "torch.nn.modules.module"
    }
    for text in texts:
        for line in trace_of(run, text):
            at = (line.site.file, line.site.function)
            if at in running - models and not hands_on(line, KEEP_SIDES) and line.how != "changed":
                return line
    return None


def samples_returned(run: Run, below: Sequence[CrashFrame]) -> list[Site]:
    """Where the data set returns its samples, if a library refused a batch of them."""
    held = below[-1].values.values() if below else ()
    batches = [b for b in held if b.kind == "mapping" and any(i.kind == "tensor" for i in b.items)]
    returned = [o for o in trace_of(run, "sample") if o.how == "return"]
    return sites(*returned[:1]) if batches else []


def went_well_before(run: Run, path: str) -> bool:
    """Steps were taken through this layer: it is not the layer that is wrong."""
    if not run.num_steps:
        return False
    seen = [op.module for deep in run.deep for op in deep.ops]
    return path in seen if path and seen else bool(path)


def sites(*origins: Origin | None) -> list[Site]:
    return [origin.site for origin in origins if origin is not None]
