"""Why a replay gave other bits: the first operator that differs, whether chance plays a part, and
what is not as it was then.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sawbones.capture.bundle import Bundle
from sawbones.capture.comparing import Changes, other_gradients
from sawbones.capture.graph import Node, Parting, first_parting, nodes_of, suspects_of_the_end

SHOWN = 3  # suspects
NOT_CHANCE = "two replays on this machine agree: it is not chance"
_SETTINGS = {
    "threads": "threads of a CPU operator",
    "default_dtype": "torch.get_default_dtype()",
    "deterministic": "torch.use_deterministic_algorithms",
    "matmul_precision": "torch.get_float32_matmul_precision()",
    "cudnn_benchmark": "torch.backends.cudnn.benchmark",
    "cudnn_deterministic": "torch.backends.cudnn.deterministic",
    "mkldnn": "torch.backends.mkldnn.enabled",
    "attention": "kernels of scaled_dot_product_attention",
}
_LIBRARIES = (
    "python",
    "numpy",
    "transformers",
    "accelerate",
    "lightning",
    "pytorch_lightning",
    "deepspeed",
)


def first_operator(
    bundle: Bundle, one: dict[str, Any], traced: dict[str, Any]
) -> tuple[str | None, str]:
    """The first operator that differs, and what two replays say about chance. `traced`: the second
    one, with its places.
    """
    prints = bundle.unpacked("prints") or {}
    then, now = nodes_of(prints.get("graph")), nodes_of(traced.get("graph"))
    chance = _parted(
        nodes_of(one.get("graph")), now, one.get("loss_print") != traced.get("loss_print")
    )
    if (
        chance is not None
        or one.get("gradients") != traced.get("gradients")
        or one.get("kind") != traced.get("kind")
    ):
        where = _shown(chance, traced) if chance is not None else None
        text = (
            "two replays on this machine differ from each other: something in the step is "
            "left to chance (a random stream of its "
            "own without a seed, the order of a set, the time, additions in no fixed "
            "order on a GPU)"
        )
        return where, text
    text = NOT_CHANCE
    if then and now and not any(node.name == "CompiledFunction" for node in then):
        parting = _parted(
            then, now, "loss" in prints and prints["loss"] != traced.get("loss_print")
        )
        if parting is not None:
            return _shown(parting, traced), text
    return _by_gradient(prints, now, traced), text


def _parted(then: list[Node], now: list[Node], other_loss: bool) -> Parting | None:
    if not then or not now:
        return None
    return first_parting(then, now) or (suspects_of_the_end(now) if other_loss else None)


def _shown(parting: Parting, traced: dict[str, Any]) -> str:
    names = list(dict.fromkeys(place for n in parting.suspects if (place := _place(traced, n))))
    if len(names) < 2:
        return ": ".join([parting.text, *names])
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"one of {', '.join(names[:SHOWN])}{more} (what passes between them is not kept)"


def _place(traced: dict[str, Any], number: int) -> str:
    places = traced.get("places") or []
    return str(places[number]) if 0 <= number < len(places) else ""


def _by_gradient(prints: Mapping[str, Any], now: list[Node], traced: dict[str, Any]) -> str | None:
    """The forward pass is the same or was not kept: the gradient that differs first names the
    operator that made it.
    """
    other = other_gradients(prints.get("gradients") or {}, traced)
    if not other or prints.get("loss") != traced.get("loss_print"):
        return None
    user = int((traced.get("users") or {}).get(other[0], -1))
    place = _place(traced, user)
    if not 0 <= user < len(now) or not place:
        return None
    return f"the backward pass of {now[user].name}, which gives the gradient of {other[0]}: {place}"


def likely_reasons(
    bundle: Bundle, changes: Changes, outcome: dict[str, Any], chance: bool
) -> list[str]:
    import torch

    then, reasons = bundle.environment, []
    if not changes.exact:
        reasons.append("another device or type was asked for")
    if then.get("torch") != torch.__version__:
        reasons.append(
            f"it was captured on torch {then.get('torch')}; this is {torch.__version__}, "
            "so replay cannot be exact. Install "
            f"{then.get('torch')}, or: sawbones replay {bundle.path} --approximate"
        )
    if (
        then.get("cpu") != torch.backends.cpu.get_cpu_capability()
        or then.get("machine") != platform.machine()
    ):
        reasons.append(
            f"another processor: {then.get('cpu')} then, "
            f"{torch.backends.cpu.get_cpu_capability()} now"
        )
    if then.get("gpu") and not torch.cuda.is_available():
        reasons.append(
            f"it was captured on {then['gpu']}; there is no such device here: --device "
            "cpu --approximate"
        )
    if then.get("settings", {}).get("compiled") and then.get("compiled"):
        reasons.append("the model was compiled then; a replay runs it eagerly")
    reasons += [
        f"{name} is not what it was when the step was captured" for name in changed_sources(bundle)
    ]
    now = outcome.get("environment") or {}
    reasons += _other_settings(then.get("settings", {}), now.get("settings") or {})
    both = [name for name in _LIBRARIES if name in then and name in now]
    reasons += [
        f"{name} {then[name]} then, {now[name]} now" for name in both if then[name] != now[name]
    ]
    if chance and then.get("hash_seed") is None:
        reasons.append("PYTHONHASHSEED was not set: the order of sets may differ between processes")
    reasons += [str(problem) for problem in (outcome.get("problems") or ())[:3]]
    reasons += [note for note in bundle.notes if "in place" in note or "left out" in note]
    return reasons


def _other_settings(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [
        f"{_SETTINGS[key]} was {then[key]} then, is {now[key]} now"
        for key in _SETTINGS
        if key in then and key in now and then[key] != now[key]
    ]


def changed_sources(bundle: Bundle) -> list[str]:
    """Files that the replay took from the working folder, as they were left out of the bundle, and
    that have changed since.
    """
    recorded = bundle.environment.get("source_sha256")
    inside = set(bundle.sources())
    if not isinstance(recorded, dict):
        return []
    folder = Path(str(bundle.environment.get("working_folder", "")))
    folder = folder if folder.is_dir() else Path.cwd()
    changed = []
    for name, digest in recorded.items():
        path = folder / str(name)
        inside_folder = not Path(str(name)).is_absolute() and ".." not in Path(str(name)).parts
        if (
            inside_folder
            and name not in inside
            and path.is_file()
            and hashlib.sha256(path.read_bytes()).hexdigest() != digest
        ):
            changed.append(str(name))
    return changed
