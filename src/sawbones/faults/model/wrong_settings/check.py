"""A layer that is built with settings that do not go together, or a model without a forward

## What it sees
The record of a crash in a constructor of torch (two sizes of which one must divide the other, a
text where a number is taken), or at the call of a module that has no forward: where one stands
under another name or inside of another method. Fires on the step of the crash.

## Why it matters
The script ends here, before the first step.

## Looks like
AssertionError: embed_dim must be divisible by num_heads; TypeError: empty(): argument 'size' must be
tuple of ints; NotImplementedError: Module is missing the required "forward" function.

## Example
    layer = nn.TransformerEncoderLayer(d_model=100, nhead=8)

## Use instead
    layer = nn.TransformerEncoderLayer(d_model=104, nhead=8)

## Confirm it
Nothing is left to confirm: the settings are in the record.

## False alarms
Only a constructor or a call that was refused is looked at.

## References
Hidden sizes changed without the heads; --hidden without type=int; a forward that is indented once
too often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, CrashFrame, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_values import divisors, indivisible, neighbours, texts_for_numbers
from sawbones.stats.crashes import (
    crash,
    deliberate,
    frame_of,
    inner_frame,
    library_frames,
    makers_of,
)

NEEDS = ("crash", "crash_record")
EXPLAINS = ("loop.api-misuse", "model.wrong-dtype", "pipeline.wrong-unpacking")
EXPERIMENT = None
PREVIEW = True
_BUILDING = ("torch.nn.modules", "torch.optim")
_LISTS = ("ModuleList", "ModuleDict")


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    below = library_frames(died)
    if deliberate(died):
        raise NothingToJudge("the script raised the exception itself")
    called = frame_of(died, "_forward_unimplemented", "torch.nn.modules")
    building = [f for f in below if f.site.function == "__init__" and f.home.startswith(_BUILDING)]
    if called is not None and "self" in called.values:
        yield _no_forward(run, called.values["self"])
        return
    if not building:
        raise NothingToJudge("no constructor of torch, and no call of a module, was refused")
    pair = indivisible(building[::-1])
    text = next(texts_for_numbers(building), None)
    if pair is not None:
        yield _not_divisible(run, building[-1], *pair)
    elif text is not None:
        yield _text(run, building[0], *text)


def _sources(run: Run, values: tuple[str, ...]) -> list[Site]:
    """Lines of the frames that lead here which a setting comes from: those that write the number
    down first.
    """
    died = crash(run)
    users = [f for f in died.frames if f.user]
    found: list[Site] = []
    for frame in reversed(users):
        operands = frame.expression.operands if frame.expression is not None else ()
        to_here = replace(died, frames=died.frames[: died.frames.index(frame) + 1])
        for operand in operands:
            found += [a.site for a in makers_of(to_here, operand.text) if a.text]
    written = [site for site in found if any(value in site.code for value in values)]
    lines = [frame.site for frame in reversed(users)]
    return list(dict.fromkeys([*written, *lines, *found]))


def _not_divisible(
    run: Run, frame: CrashFrame, whole: str, size: int, part: str, count: int
) -> Finding:
    layer = frame.values["self"].cls if "self" in frame.values else "The layer"
    below, above = neighbours(size, count)
    others = ", ".join(str(n) for n in divisors(size))
    return explained(
        run,
        f"{layer} is built with {whole}={size}, which {part}={count} does not divide",
        _sources(run, (str(size), str(count))),
        Fix(
            f"Use {whole}={above} (or {below}), or a number of {part} that divides {size}: {others}."
        ),
        expected=f"{whole} that is a multiple of {part}",
        got=f"{size} / {count}, which leaves {size % count}",
        because=f"each of the {count} gets an equal share of the {size}",
        sizes=[Size(whole, str(size)), Size(part, str(count))],
    )


def _text(run: Run, frame: CrashFrame, name: str, text: str) -> Finding:
    layer = frame.values["self"].cls if "self" in frame.values else frame.site.function
    convert = "int" if text.strip().isdigit() else "float"
    return explained(
        run,
        f"{layer} is given {name}={text!r}, a text, where it takes a number",
        _sources(run, (text,)),
        Fix(
            f"Make it a number where it is read: {convert}({name}); of an argument of the command "
            f"line, type={convert} in add_argument; in YAML, a number without a dot such as 1e-3 "
            "is a text (write 1.0e-3)."
        ),
        expected=f"a number for {name}",
        got=f"the text {text!r}",
        because="settings from a command line or a file are texts until they are converted",
        sizes=[Size(name, repr(text), "str")],
    )


def _no_forward(run: Run, module: Bound) -> Finding:
    frame = inner_frame(crash(run))
    built = module.built.site if module.built is not None else None
    inside = module.settings.get("forward_inside")
    methods = [str(m) for m in module.settings.get("methods") or ()]
    near = get_close_matches("forward", methods, 1)
    line: Site | None = None
    if inside:
        holder = module.lines.get(str(inside))
        number = int(module.settings.get("forward_line") or 0)
        line = replace(holder, line=number, code="def forward") if holder is not None else None
        because = f"forward stands inside of {inside} (line {number}): it is a local function of it"
        fix = f"Move forward (line {number}) out by one level, to the level of {inside}."
    elif near:
        line = module.lines.get(near[0])
        because = f"the class has a method {near[0]}"
        fix = f"Rename {near[0]} to forward."
    elif module.cls in _LISTS:
        because = f"{module.cls} only keeps modules"
        fix = "Call its members one after the other: for layer in layers: x = layer(x)."
    else:
        because = f"the class has only {', '.join(methods)}" if methods else ""
        fix = f"Give {module.cls} a method forward(self, x)."
    return explained(
        run,
        f"{module.cls} has no forward",
        (line, frame.site, built),
        Fix(fix),
        expected=f"a method forward in {module.cls}",
        got="none",
        because=because,
    )
