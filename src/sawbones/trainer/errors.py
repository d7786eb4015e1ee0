"""Every error the pipeline raises on purpose. The first line of each message stands alone."""

from __future__ import annotations


class TrainerError(Exception):
    """The one parent: what a caller catches to print a line instead of a traceback."""


class PackageMissing(TrainerError):
    """A library that only the trainer needs."""


class ConfigError(TrainerError):
    """A setting, or a combination of settings, that cannot be run."""


class SplitLeak(TrainerError):
    """The same content on two sides of a split."""


class BatchError(TrainerError):
    """A collated batch that breaks one of its invariants."""


class PositionOutOfRange(TrainerError):
    """A sequence longer than the position table."""


class CheckpointError(TrainerError):
    """A checkpoint that is missing, truncated, altered or made by another configuration."""


class TrainingDiverged(TrainerError):
    """A loss or gradient that is not finite where no loss scaler may skip the step."""
