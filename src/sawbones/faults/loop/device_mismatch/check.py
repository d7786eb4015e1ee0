"""Values on different devices meet in one operation

## What it sees
The record of a crash: an operation was given tensors, or a layer and its input, that lie on
different devices. Fires on the step of the crash; the value that was not moved comes first.

## Why it matters
The script ends here.

## Looks like
RuntimeError: Expected all tensors to be on the same device.

## Example
    model = nn.Linear(5, 3).to(device)
    x.to(device)
    y = model(x)

## Use instead
    model = nn.Linear(5, 3).to(device)
    x = x.to(device)
    y = model(x)

## Confirm it
Nothing is left to confirm: the devices are in the record.

## False alarms
A single number of no axes may lie on another device: torch accepts it, and nothing raises.

## References
tensor.to() gives a copy; module.to() moves the module itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Assignment, Bound, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_shapes import written
from sawbones.stats.crashes import (
    Given,
    Refusal,
    crash,
    frame_of,
    inner_frame,
    makers,
    names_of,
    refusal,
)

NEEDS = ("crash", "crash_record")
EXPLAINS = ("model.wrong-dtype",)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    if frame_of(crash(run), "_lazy_init", "torch.cuda") is not None:
        yield _no_gpu(run)
        return
    call = refusal(run)
    if call is None:
        raise NothingToJudge("no operation of torch was refused")
    module = call.module
    own = (module or call.frame.values.get("self", Bound("none"))).device
    given = [g for g in call.given if g.bound.kind == "tensor"]
    for tensors in (given, [*given, *_named(call)]):
        devices = {g.bound.device for g in tensors} | ({own} if own else set())
        if len(devices) == 2 and "," not in own:
            break
    else:
        return
    yield _finding(run, call, tensors, own)


def _no_gpu(run: Run) -> Finding:
    """torch was asked for CUDA where there is none."""
    frame = inner_frame(crash(run))
    expression = frame.expression
    names = [n for o in expression.operands for n in names_of(o.text)] if expression else []
    made = [a for name in names for a in makers(run, name) if a.how == "assign" and a.text]
    chosen = [a for a in made if frame.values.get(a.name, Bound("none")).kind == "text"]
    return explained(
        run,
        "A GPU is asked for, and torch finds none on this machine",
        (*(a.site for a in chosen[:1]), frame.site),
        Fix('Use it only where it is there: "cuda" if torch.cuda.is_available() else "cpu".'),
        expected="a CUDA device, and a torch that was built for it",
        got="neither, or only one of them",
        because="the script decides for the GPU without asking torch whether there is one",
        at_most="likely",
    )


def _named(call: Refusal) -> list[Given]:
    """Tensors, and layers, that the operands are computed from on the line itself."""
    names = [n for o in call.expression.operands if o.bound is None for n in names_of(o.text)]
    values = call.frame.values
    return [Given(n, values[n]) for n in names if n in values and values[n].kind == "tensor"]


def _finding(run: Run, call: Refusal, tensors: list[Given], own: str) -> Finding:
    given = next((g for g in tensors if own and g.bound.device != own), tensors[0])
    others = [g for g in tensors if g.bound.device != given.bound.device]
    meant = _meant(run, {g.bound.device for g in tensors} | ({own} if own else set()))
    left = own != meant if meant else own == "cpu" and given.bound.device != "cpu"
    if call.module is not None and (left or call.handed_on):
        return _layer_left(run, call, given)
    astray = [g for g in tensors if meant and g.bound.device != meant]
    if astray:
        given = astray[0]
        others = [g for g in tensors if g.bound.device == meant]
        own = own if own == meant else ""
    elif not own and given.bound.device != "cpu" and others:
        given, others = others[0], [given]
    target = own or others[0].bound.device
    works = call.layer if call.module is not None or not own else "the model"
    made = [a for a in makers(run, given.name) if a.text]
    dropped = _dropped(call, given.name)
    root: Site | None = dropped or (made[0].site if made else None)
    because = _comes_from(given.name, made)
    if dropped is not None:
        because = f"line {dropped.line} moves a copy and keeps nothing of it: {dropped.code}"
    name = (names_of(given.name) or [given.name])[-1]
    moved = f"{name} = {name}.to({_device(run, target)})"
    fix = Fix(f"Move it and keep the result: {moved}.")
    if dropped is not None and f"{given.name}.to(" in dropped.code:
        old = f"{given.name}.to("
        fix = Fix(f"Keep the result: {moved}.", replace=(old, f"{given.name} = {old}"))
    return explained(
        run,
        f"{given.name} is on {given.bound.device} and {works} works on {target}",
        (root, call.frame.site),
        fix,
        expected=f"everything on {target}",
        got=f"{given.name} on {given.bound.device}",
        because=because,
        sizes=_rows(call, tensors),
        exactly=(2, 1),  # devices that meet
    )


def _meant(run: Run, devices: set[str]) -> str:
    """The device that the script works on, of the two that meet: the one that it keeps under a
    name, else the one where everything lies but a single tensor. "" where neither tells.
    """
    frames = [f for f in crash(run).frames if f.user]
    kept = {
        d
        for f in frames
        for b in f.values.values()
        if b.cls == "device"
        for d in devices
        if b.dtype.partition(":")[0] == d.partition(":")[0]
    }
    if len(kept) == 1:
        return kept.pop()
    held: dict[str, set[str]] = {device: set() for device in devices}
    for frame in frames:
        for name, bound in frame.values.items():
            if bound.kind in ("tensor", "module") and bound.device in held:
                held[bound.device].add(name)
    few, many = sorted(held, key=lambda device: len(held[device]))
    alone = len(held[few]) == 1 and len(held[many]) > 1
    return many if alone else ""


def _layer_left(run: Run, call: Refusal, given: Given) -> Finding:
    module = call.module
    assert module is not None
    its = "the CPU" if module.device == "cpu" else module.device
    built = module.built.site if module.built is not None else None
    return explained(
        run,
        f"{call.layer} was left on {its} and is given values on {given.bound.device}",
        (built, call.frame.site),
        Fix(
            f"Move the model: model.to({_device(run, given.bound.device)}), before the optimizer is made. A layer "
            "in a plain list or made in forward does not move with it."
        ),
        expected=f"weights on {given.bound.device}",
        got=f"weights on {module.device}",
        because=f"{given.name} is on {given.bound.device}",
        sizes=_rows(call, [given]),
        exactly=(2, 1),  # devices that meet
    )


def _comes_from(name: str, made: list[Assignment]) -> str:
    return f"{name} comes from {made[0].text} (line {made[0].site.line})" if made else ""


def _rows(call: Refusal, tensors: list[Given]) -> list[Size]:
    rows = [Size(g.name, written(g.bound.shape), g.bound.device) for g in tensors[:4]]
    if call.module is not None and call.module.device:
        rows.append(Size(f"weights of {call.layer}", "", call.module.device))
    return rows


def _dropped(call: Refusal, name: str) -> Site | None:
    """A line of the frame that moves the value and throws the copy away."""
    return next((site for site in call.frame.dropped if site.code.startswith(f"{name}.")), None)


def _device(run: Run, target: str) -> str:
    """The name under which the script keeps this device, else the device in quotes."""
    for frame in reversed([f for f in crash(run).frames if f.user]):
        for name, bound in frame.values.items():
            if bound.cls == "device" and bound.dtype.partition(":")[0] == target.partition(":")[0]:
                return name
    return f'"{target}"'
