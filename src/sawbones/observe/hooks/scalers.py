"""GradScaler: scale, unscale_, step, update. A disabled scaler does nothing and is not recorded."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.patches import Patches

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    scaler_class = torch.amp.GradScaler
    inside: list[Any] = []  # scalers whose step is running: what they call themselves is no event of the loop's

    def seen(scaler: Any) -> bool:
        return recorder.is_host() and scaler.is_enabled()

    def make_init(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if seen(self):

                def note() -> None:
                    names = ("_init_scale", "_growth_factor", "_backoff_factor", "_growth_interval")
                    settings = {name[1:]: getattr(self, name, None) for name in names}
                    site = recorder.sites.find()
                    row = {"site": asdict(site) if site is not None else None, **settings}
                    recorder.facts.setdefault("scalers", []).append(row)

                recorder.guard("scaler", note)

        return __init__

    def make_scale(original: Any) -> Any:
        def scale(self: Any, outputs: Any) -> Any:
            result = original(self, outputs)
            if seen(self):

                def note() -> None:
                    recorder.scaled.append((result, outputs))
                    recorder.event("scale", {"scaler": id(self) % 10**6, "scale": _scale(self)})

                recorder.guard("scaler", note)
            return result

        return scale

    def make_unscale(original: Any) -> Any:
        def unscale_(self: Any, optimizer: Any) -> Any:
            result = original(self, optimizer)
            if seen(self) and self not in inside:
                index = recorder.census.optimizer_index(optimizer)
                recorder.guard("scaler", recorder.event, "unscale", {"optimizer": index, "scale": _scale(self)})
            return result

        return unscale_

    def make_step(original: Any) -> Any:
        def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if not seen(self):
                return original(self, optimizer, *args, **kwargs)
            before = recorder.step
            recorder.facts["scale"] = _scale(self)
            inside.append(self)
            try:
                result = original(self, optimizer, *args, **kwargs)
            finally:
                inside.pop()

            def note() -> None:
                skipped = recorder.step == before
                data = {
                    "optimizer": recorder.census.optimizer_index(optimizer),
                    "scale": _scale(self),
                    "skipped": skipped,
                }
                recorder.event("scaler_step", data, step=before)
                if skipped:
                    recorder.step_skipped(optimizer)

            recorder.guard("scaler", note)
            return result

        return step

    def make_update(original: Any) -> Any:
        def update(self: Any, *args: Any, **kwargs: Any) -> Any:
            before = _scale(self)
            result = original(self, *args, **kwargs)
            if seen(self):
                data = {"scale_before": before, "scale_after": _scale(self)}
                recorder.guard("scaler", recorder.event, "scaler_update", data)
            return result

        return update

    patches.replace(scaler_class, "__init__", make_init)
    patches.replace(scaler_class, "scale", make_scale)
    patches.replace(scaler_class, "unscale_", make_unscale)
    patches.replace(scaler_class, "step", make_step)
    patches.replace(scaler_class, "update", make_update)


def _scale(scaler: Any) -> float | None:
    """The scale, where reading it does not wait for a device."""
    value = getattr(scaler, "_scale", None)
    if value is None:
        return float(getattr(scaler, "_init_scale", float("nan")))
    return float(value) if value.device.type == "cpu" else None
