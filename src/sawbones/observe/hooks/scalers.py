"""GradScaler: scale, unscale_, step, update. A disabled scaler does nothing and is not recorded."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.patches import Patches
from sawbones.schema.one_off import Scaler

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


MAX_SCALERS = 500  # described; a script may build one per step


class _Scalers:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        # whose step is running: what they call themselves is no event of the loop's
        self.stepping: list[Any] = []

    def seen(self, scaler: Any) -> bool:
        return self.recorder.is_host() and scaler.is_enabled()

    def submit_scale(self, scaler: Any, data: dict[str, Any], key: str) -> None:
        """Now, or when it has come from the device."""
        value = getattr(scaler, "_scale", None)
        self.recorder.scalars.submit(
            _scale(scaler) if value is None else value, lambda number: data.__setitem__(key, number)
        )


def install(recorder: Recorder, patches: Patches) -> None:
    scalers = _Scalers(recorder)
    scaler_class = torch.amp.GradScaler
    patches.replace(scaler_class, "__init__", partial(_make_init, scalers))
    patches.replace(scaler_class, "scale", partial(_make_scale, scalers))
    patches.replace(scaler_class, "unscale_", partial(_make_unscale, scalers))
    patches.replace(scaler_class, "step", partial(_make_step, scalers))
    patches.replace(scaler_class, "update", partial(_make_update, scalers))


def _make_init(scalers: _Scalers, original: Any) -> Any:
    recorder = scalers.recorder

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if scalers.seen(self):

            def note() -> None:
                names = ("_init_scale", "_growth_factor", "_backoff_factor", "_growth_interval")
                settings = (getattr(self, name, None) for name in names)
                known = recorder.facts.setdefault("scalers", [])
                if len(known) < MAX_SCALERS:
                    known.append(Scaler(recorder.sites.find(), *settings))

            recorder.guard("scaler", note)

    return __init__


def _make_scale(scalers: _Scalers, original: Any) -> Any:
    recorder = scalers.recorder

    def scale(self: Any, outputs: Any) -> Any:
        result = original(self, outputs)
        if scalers.seen(self):

            def note() -> None:
                recorder.scaled.append((result, outputs))
                data: dict[str, Any] = {"scaler": id(self) % 10**6}
                scalers.submit_scale(self, data, "scale")
                recorder.event("scale", data)

            recorder.guard("scaler", note)
        return result

    return scale


def _make_unscale(scalers: _Scalers, original: Any) -> Any:
    recorder = scalers.recorder

    def unscale_(self: Any, optimizer: Any) -> Any:
        result = original(self, optimizer)
        if scalers.seen(self) and self not in scalers.stepping:

            def note() -> None:
                data: dict[str, Any] = {"optimizer": recorder.census.optimizer_index(optimizer)}
                scalers.submit_scale(self, data, "scale")
                recorder.event("unscale", data)

            recorder.guard("scaler", note)
        return result

    return unscale_


def _make_step(scalers: _Scalers, original: Any) -> Any:
    recorder = scalers.recorder

    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if not scalers.seen(self):
            return original(self, optimizer, *args, **kwargs)
        before = recorder.step
        recorder.loss_scale = getattr(self, "_scale", None)
        if recorder.loss_scale is None:
            recorder.loss_scale = _scale(self)
        scalers.stepping.append(self)
        try:
            result = original(self, optimizer, *args, **kwargs)
        finally:
            scalers.stepping.pop()

        def note() -> None:
            skipped = recorder.step == before
            data = {"optimizer": recorder.census.optimizer_index(optimizer), "skipped": skipped}
            scalers.submit_scale(self, data, "scale")
            recorder.event("scaler_step", data, step=before)
            if skipped:
                recorder.step_skipped(optimizer)
            recorder.loss_scale = None

        recorder.guard("scaler", note)
        return result

    return step


def _make_update(scalers: _Scalers, original: Any) -> Any:
    recorder = scalers.recorder

    def update(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not scalers.seen(self):
            return original(self, *args, **kwargs)
        data: dict[str, Any] = {}
        recorder.guard("scaler", scalers.submit_scale, self, data, "scale_before")
        result = original(self, *args, **kwargs)

        def note() -> None:
            scalers.submit_scale(self, data, "scale_after")
            recorder.event("scaler_update", data)

        recorder.guard("scaler", note)
        return result

    return update


def _scale(scaler: Any) -> float:
    """Of a scaler that has not scaled anything yet."""
    return float(getattr(scaler, "_init_scale", float("nan")))
