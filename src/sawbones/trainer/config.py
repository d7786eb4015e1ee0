"""What a run is made of. Plain frozen records without torch, stored in every checkpoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from .errors import ConfigError

TASKS = ("copy", "reverse", "sort", "translation", "lm")
ARCHS = ("encoder-decoder", "decoder-only")
POSITIONS = ("sinusoidal", "learned", "rotary")
AMP_MODES = ("off", "bf16", "fp16")
TOKENIZERS = ("char", "bpe")
DTYPES = ("float32", "float64")
DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class DataConfig:
    task: str = "reverse"
    tokenizer: str = "char"
    seed: int = 0
    num_train: int = 20_000
    num_val: int = 500
    num_test: int = 500
    min_length: int = 3  # letters of a copy, reverse or sort example
    max_length: int = 10
    max_tokens: int = 64  # longest source or target after tokenization, EOS included
    bpe_vocab_size: int = 512
    augment: float = 0.2  # share of training examples replaced by a label-preserving variant


@dataclass(frozen=True)
class ModelConfig:
    arch: str = "encoder-decoder"
    positions: str = "sinusoidal"
    vocab_size: int = 0  # set from the tokenizer
    d_model: int = 96
    num_heads: int = 4
    num_layers: int = 2  # of the decoder, and of the encoder where there is one
    d_ff: int = 192
    dropout: float = 0.02
    max_positions: int = 144


@dataclass(frozen=True)
class OptimConfig:
    lr: float = 3e-3
    warmup: int = 100
    final_lr_share: float = 0.02
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.98
    clip: float = 1.0
    label_smoothing: float = 0.0


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides the numbers of a run; `RunOptions` holds what does not."""

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    seed: int = 0
    steps: int = 1300
    batch_size: int = 64  # examples per micro-batch over all ranks
    accumulate: int = 1
    amp: str = "off"
    dtype: str = "float32"
    deterministic: bool = False
    eval_every: int = 250
    patience: int = 0  # evaluations without improvement before stopping; 0 never stops early
    min_delta: float = 0.0
    overfit_batch: int = 0  # train on the first N batches only; 0 is the whole training split


@dataclass(frozen=True)
class RunOptions:
    """Where and how long this process runs: changes no number of the training."""

    out: Path = Path("runs/train")
    resume: Path | None = None
    stop_after: int | None = None
    save_every: int = 250
    keep: int = 2  # step checkpoints kept beside the best one
    device: str = "auto"
    workers: int = 0
    arguments: tuple[str, ...] = ()


def to_json(config: TrainConfig) -> dict[str, Any]:
    return asdict(config)


def from_json(record: dict[str, Any]) -> TrainConfig:
    """Unknown keys are refused: a checkpoint of another version must not be half understood."""
    parts = {"data": DataConfig, "model": ModelConfig, "optim": OptimConfig}
    known = {f.name for f in fields(TrainConfig)}
    if unknown := sorted(set(record) - known):
        raise ConfigError(
            f"configuration has unknown keys {unknown}; this version knows {sorted(known)}"
        )
    values: dict[str, Any] = dict(record)
    try:
        for name, kind in parts.items():
            values[name] = kind(**record[name])
        return TrainConfig(**values)
    except (KeyError, TypeError) as error:
        raise ConfigError(f"configuration does not fit this version: {error}") from error


def differences(asked: TrainConfig, stored: TrainConfig) -> list[str]:
    """The settings in which two configurations differ, as `model.d_model: 64, was 96`."""
    left, right = _flat(asked), _flat(stored)
    return [f"{key}: {left[key]}, was {right[key]}" for key in left if left[key] != right[key]]


def _flat(config: TrainConfig) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in to_json(config).items():
        if isinstance(value, dict):
            flat.update({f"{key}.{inner}": v for inner, v in value.items()})
        else:
            flat[key] = value
    return flat


def check(config: TrainConfig) -> None:
    """Raise ConfigError with one line for the first setting that cannot work."""
    data, model, optim = config.data, config.model, config.optim
    for name, value, allowed in (
        ("task", data.task, TASKS),
        ("tokenizer", data.tokenizer, TOKENIZERS),
        ("arch", model.arch, ARCHS),
        ("positions", model.positions, POSITIONS),
        ("amp", config.amp, AMP_MODES),
        ("dtype", config.dtype, DTYPES),
    ):
        if value not in allowed:
            raise ConfigError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
    for name, number, low in (
        ("steps", config.steps, 1),
        ("batch-size", config.batch_size, 1),
        ("accumulate", config.accumulate, 1),
        ("warmup", optim.warmup, 0),
        ("eval-every", config.eval_every, 1),
        ("patience", config.patience, 0),
        ("overfit-batch", config.overfit_batch, 0),
        ("d-model", model.d_model, 2),
        ("heads", model.num_heads, 1),
        ("layers", model.num_layers, 1),
        ("seed", config.seed, 0),
        ("min-length", data.min_length, 1),
        ("max-length", data.max_length, data.min_length),
        ("max-tokens", data.max_tokens, 2),
        ("num-train", data.num_train, 1),
        ("num-eval", min(data.num_val, data.num_test), 1),
    ):
        if number < low:
            raise ConfigError(f"{name} is {number}; it must be at least {low}")
    _check_ranges(config)


def _check_ranges(config: TrainConfig) -> None:
    model, optim = config.model, config.optim
    if not 0 < optim.lr < float("inf"):
        raise ConfigError(f"lr is {optim.lr}; it must be above 0 and finite")
    if not 0 < optim.clip < float("inf"):
        raise ConfigError(
            f"clip is {optim.clip}; it must be above 0 and finite (a large value switches "
            "clipping off)"
        )
    if not 0 <= model.dropout < 1:
        raise ConfigError(f"dropout is {model.dropout}; it must lie in [0, 1)")
    if not 0 <= optim.label_smoothing < 1:
        raise ConfigError(f"label-smoothing is {optim.label_smoothing}; it must lie in [0, 1)")
    if model.d_model % model.num_heads:
        raise ConfigError(
            f"d-model {model.d_model} does not split into {model.num_heads} heads of equal width"
        )
    if model.positions == "rotary" and (model.d_model // model.num_heads) % 2:
        raise ConfigError(
            f"rotary positions need an even head width; it is {model.d_model // model.num_heads}"
        )
    if config.data.task == "lm" and model.arch != "decoder-only":
        raise ConfigError("task lm has no source text for an encoder; use --arch decoder-only")
    if config.dtype == "float64" and config.amp != "off":
        raise ConfigError(f"amp {config.amp} and float64 exclude each other; use --amp off")


# Steps at which the default model has learnt each task; texts of several tokens per word ask for
# byte pairs.
_DEFAULT_STEPS = {"copy": 800, "reverse": 1300, "sort": 1300, "translation": 1200, "lm": 600}


PATIENCE = 5  # evaluations, one every 250 steps: nearly all of the longest default run


def defaults_for(task: str) -> TrainConfig:
    """The configuration `sawbones train --task TASK` starts from."""
    if task not in TASKS:
        raise ConfigError(f"task is {task!r}; it must be one of {', '.join(TASKS)}")
    config = TrainConfig(data=DataConfig(task=task), steps=_DEFAULT_STEPS[task], patience=PATIENCE)
    if task in ("translation", "lm"):
        config = replace(config, data=replace(config.data, tokenizer="bpe"))
    if task == "lm":
        config = replace(config, model=replace(config.model, arch="decoder-only"))
    return config


def without_noise(config: TrainConfig) -> TrainConfig:
    """Dropout and augmentation off: what memorising a batch and comparing numbers need."""
    return replace(
        config, model=replace(config.model, dropout=0.0), data=replace(config.data, augment=0.0)
    )


def for_verification(config: TrainConfig) -> TrainConfig:
    """A short run in float64, where a wrong formula cannot hide behind rounding."""
    steps = min(config.steps, 20)
    quiet = without_noise(
        replace(config, steps=steps, dtype="float64", amp="off", deterministic=True)
    )
    sizes = {"num_train": 2000, "num_val": 64, "num_test": 64}
    fewer = {name: min(size, getattr(quiet.data, name)) for name, size in sizes.items()}
    return replace(quiet, data=replace(quiet.data, **fewer))
