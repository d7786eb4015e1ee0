"""Where the time and the memory of a training step go."""

from __future__ import annotations

from dataclasses import dataclass

from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class StepParts:
    """Milliseconds of one step."""

    data: float
    forward: float
    backward: float
    optimizer: float
    other: float


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Per step; the times are its own, without the operators that it calls."""

    name: str
    site: Site | None
    calls: float
    host_ms: float
    device_ms: float


@dataclass(frozen=True, slots=True)
class MemoryOwner:
    num_bytes: int
    name: str
    site: Site | None


@dataclass(frozen=True, slots=True)
class Profile:
    split: tuple[StepParts, ...] = ()
    operators: tuple[OperatorTime, ...] = ()  # the slowest first
    free_steps: int = 0  # without a clock or a trace, for the throughput
    free_seconds: float = 0.0
    # bytes that outlast a step
    parameters: int = 0
    gradients: int = 0
    optimizer: int = 0
    step_peak: int = 0  # bytes that the traced steps had allocated themselves
    owners: tuple[MemoryOwner, ...] = ()  # of these, the largest first
    device_peak: int = 0  # bytes
