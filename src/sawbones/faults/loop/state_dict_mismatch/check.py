"""A checkpoint that does not fit the model or the optimizer that it is loaded into

## What it sees
The record of a crash in load_state_dict: the keys of the checkpoint, those that the model misses
and does not expect, and the shapes that differ. Recognises one prefix on all keys (module.,
_orig_mod.), a checkpoint that holds the weights under a key of its own, and other widths. Fires on
the line that loads. Where strict=False keeps torch silent: a model that was given weights and has
taken none of them, and was given no others later.

## Why it matters
The script ends here. With strict=False it goes on with weights that were never loaded.

## Looks like
RuntimeError: Error(s) in loading state_dict, with two long lists of keys.

## Example
    torch.save(nn.DataParallel(model).state_dict(), path)
    model.load_state_dict(torch.load(path))

## Use instead
    torch.save(nn.DataParallel(model).module.state_dict(), path)
    model.load_state_dict(torch.load(path))

## Confirm it
Nothing is left to confirm: torch compared the keys and shapes.

## False alarms
A file that cannot be read at all is loop.checkpoint-corrupt. A new head that is missing in the
checkpoint, or weights that the model has no place for, are meant: one tensor that is taken is enough.

## References
DataParallel puts module. in front of every key, torch.compile _orig_mod.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, explained, finding
from sawbones.schema import Bound, CrashFrame, Finding, Fix, Run, Site, Size
from sawbones.stats.crashes import crash, frame_of, inner_frame, makers

NEEDS = ("loaded_states",)
EXPLAINS = ("loop.checkpoint-corrupt", "loop.resume-incomplete")
EXPERIMENT = None
# The shapes that torch names for one key: in the checkpoint, in the model.
_SHAPES = re.compile(
    r"for ([\w.]+): .*?torch\.Size\(\[([\d, ]*)\]\).*?torch\.Size\(\[([\d, ]*)\]\)"
)


def check(run: Run) -> Iterator[Finding]:
    if run.ending.crash is None or run.ending.kind != "exception":
        yield from _nothing_taken(run)
        return
    died = crash(run)
    frame = frame_of(died, "load_state_dict")
    user = inner_frame(died)
    if frame is None:
        raise NothingToJudge("nothing was refused by load_state_dict")
    holder = frame.values.get("self")
    if holder is not None and holder.kind == "optimizer":
        yield _optimizer(run, user, frame)
        return
    given = frame.values.get("state_dict")
    if given is None or given.kind != "mapping":
        return
    missing, unexpected = _keys(frame, "missing_keys"), _keys(frame, "unexpected_keys")
    sized = _SHAPES.search(died.message)
    if sized is not None and not missing and not unexpected:
        yield _widths(run, user, sized)
    elif missing or unexpected:
        yield _names(run, user, given, missing, unexpected)


def _nothing_taken(run: Run) -> Iterator[Finding]:
    """A model that went on with the weights it had, as none of those it was given has its names."""
    loads = run.loaded_weights
    for number, row in enumerate(loads):
        later = [other for other in loads[number + 1 :] if other.own == row.own]
        if not row.given or row.taken or not row.missing or any(r.taken for r in later):
            continue
        text = (
            f"none of {row.given} tensors was taken, and the model's own {row.missing} stayed as "
            f"they were: {row.first_unexpected} was given, {row.first_missing} is wanted"
        )
        prefix = _prefix((row.first_missing,), (row.first_unexpected,))
        extra = _prefix((row.first_unexpected,), (row.first_missing,))
        how = (
            f"take {prefix!r} off the keys"
            if prefix
            else f"put {extra!r} in front of the keys, or load it into that part of the model"
            if extra
            else "give the keys the names that the model has"
        )
        saved = [e.site for e in run.of_kind("save") if e.site is not None]
        yield finding(
            "Nothing of the checkpoint was loaded",
            tuple(site for site in (row.site, *saved[-1:]) if site is not None),
            (exact(text, 0, expected=row.given, signal="loaded_states", steps=(row.step,)),),
            Fix(
                f"Before load_state_dict, {how}; and leave strict=False away, so that torch says "
                "what does not fit."
            ),
        )
        return


def _keys(frame: CrashFrame, name: str) -> tuple[str, ...]:
    bound = frame.values.get(name)
    return bound.keys if bound is not None else ()


def _sites(run: Run, user: CrashFrame) -> tuple[Site | None, ...]:
    """Where the checkpoint was saved, as far as this run did it, and where it is loaded."""
    saved = [e.site for e in run.of_kind("save") if e.site is not None]
    operands = user.expression.operands if user.expression is not None else ()
    named = [o.text for o in operands[1:]] or [o.text for o in operands]
    made = [a for name in named for a in makers(run, name) if a.text]
    return (*saved[-1:], user.site, *(a.site for a in made[:2]))


def _names(
    run: Run,
    user: CrashFrame,
    given: Bound,
    missing: tuple[str, ...],
    unexpected: tuple[str, ...],
) -> Finding:
    nested = next((k for k in given.keys if "state_dict" in k or k in ("model", "weights")), "")
    prefix, extra = _prefix(missing, unexpected), _prefix(unexpected, missing)
    source = _argument(user)
    if nested and nested in unexpected:
        title = f"The weights stand under {nested!r} in the checkpoint"
        fix = f"Load that part of it: load_state_dict({source}[{nested!r}])."
        because = f"the checkpoint holds {', '.join(given.keys[:5])}"
    elif prefix:
        title = f"Every key of the checkpoint begins with {prefix!r}"
        fix = (
            f"Take the prefix off: {{k.removeprefix({prefix!r}): v for k, v in {source}.items()}}; "
            "or save model.module.state_dict() in the first place."
        )
        because = f"{unexpected[0]} in the checkpoint is {missing[0]} in the model"
    elif extra:
        title = f"Every key of the model begins with {extra!r}, those of the checkpoint do not"
        fix = f"Load it into the model inside: {extra.rstrip('.')} of the wrapper."
        because = f"{missing[0]} in the model is {unexpected[0]} in the checkpoint"
    else:
        title = "The checkpoint has other keys than the model"
        fix = "Build the model as it was when the checkpoint was saved, layer by layer."
        because = _difference(missing, unexpected)
    return explained(
        run,
        title,
        _sites(run, user),
        Fix(fix),
        expected=f"{', '.join(missing[:3])}, ..." if missing else "the keys of the model alone",
        got=", ".join(unexpected[:3] or given.keys[:3]) + ", ...",
        because=because,
        sizes=[
            Size("keys that the checkpoint lacks", str(len(missing))),
            Size("keys that the model lacks", str(len(unexpected))),
        ],
        exactly=(len(missing) + len(unexpected), 0),
    )


def _difference(missing: tuple[str, ...], unexpected: tuple[str, ...]) -> str:
    lacking = f"the checkpoint has no {missing[0]}" if missing else ""
    more = f"the model has no {unexpected[0]}" if unexpected else ""
    return ", and ".join(part for part in (lacking, more) if part)


def _prefix(short: tuple[str, ...], long: tuple[str, ...]) -> str:
    """What stands in front of every one of `long` and makes it one of `short`."""
    if not short or not long or not long[0].endswith(short[0]):
        return ""
    found = long[0].removesuffix(short[0])
    same = all(key.startswith(found) for key in long)
    return found if found and same else ""


def _argument(user: CrashFrame) -> str:
    operands = user.expression.operands if user.expression is not None else ()
    return operands[-1].text if operands else "state"


def _widths(run: Run, user: CrashFrame, sized: re.Match[str]) -> Finding:
    key, saved, wanted = sized[1], sized[2], sized[3]
    path = key.rpartition(".")[0]
    built = next((m.built for m in run.modules if m.path == path), None)
    model = _model(user)
    at = built or (model.built.site if model is not None and model.built is not None else None)
    return explained(
        run,
        f"{key} is {_by(saved)} in the checkpoint and {_by(wanted)} in the model",
        (at, *_sites(run, user)),
        Fix(
            "Build the model with the sizes that it had when the checkpoint was saved. If the new "
            "sizes are meant (another number of classes), leave out what does not fit and load "
            "with strict=False: {k: v for k, v in saved.items() if v.shape == own[k].shape}, with "
            "own = model.state_dict()."
        ),
        expected=f"{key} of {_by(wanted)}, as the model is built",
        got=f"{_by(saved)} from the checkpoint",
        because="the checkpoint was saved from a model with other sizes",
        sizes=[Size(f"{key} in the checkpoint", _by(saved)), Size("in the model", _by(wanted))],
        exactly=_first_difference(saved, wanted),
    )


def _model(user: CrashFrame) -> Bound | None:
    operands = user.expression.operands if user.expression is not None else ()
    bound = operands[0].bound if operands else None
    return bound if bound is not None and bound.kind == "module" else None


def _by(sizes: str) -> str:
    return " x ".join(sizes.split(", "))


def _first_difference(saved: str, wanted: str) -> tuple[float, float]:
    a, b = ([int(n) for n in re.findall(r"\d+", text)] for text in (saved, wanted))
    pairs = [(x, y) for x, y in zip(a, b, strict=False) if x != y]
    return pairs[0] if pairs else (len(a), len(b))


def _optimizer(run: Run, user: CrashFrame, frame: CrashFrame) -> Finding:
    own = frame.values.get("param_lens")
    saved = frame.values.get("saved_lens")
    groups = frame.values.get("groups"), frame.values.get("saved_groups")
    sizes = [Size("groups", str(b.length)) for b in groups if b is not None]
    known = own is not None or saved is not None
    return explained(
        run,
        "The optimizer of the checkpoint holds other parameters than this one",
        _sites(run, user),
        Fix(
            "Make the optimizer over the same parameters, in the same groups, as when it was saved."
        ),
        expected="the same number of groups, with as many parameters in each",
        got="another number" if known or sizes else "others",
        because="an optimizer is saved by the order of its parameters, not by their names",
        sizes=sizes,
    )
