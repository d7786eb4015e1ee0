"""`sawbones train`: flags -> configuration, one run, one line per problem."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sawbones.observe import ctrl_c
from sawbones.trainer import config as settings
from sawbones.trainer.config import DEVICES, RunOptions, TrainConfig
from sawbones.trainer.errors import ConfigError, TrainerError, TrainingDiverged

if TYPE_CHECKING:
    from sawbones.trainer.loop import RunResult

PROGRAM = "sawbones train"
DEFAULT = TrainConfig()
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _flag(text: str, default: object = None, choices: tuple[str, ...] = ()) -> Any:
    """Every flag is None until given, so that a resumed run can tell a wish from a default."""
    shown = f"{text} [default: {default}]" if default is not None else text
    return typer.Option(
        help=shown, metavar="|".join(choices) if choices else None, show_default=False
    )


@app.command(help="Train the reference Transformer pipeline.")
def command(
    task: Annotated[str | None, _flag("What to learn.", "reverse", settings.TASKS)] = None,
    arch: Annotated[
        str | None, _flag("Architecture.", "encoder-decoder; lm: decoder-only", settings.ARCHS)
    ] = None,
    positions: Annotated[
        str | None, _flag("Positions.", DEFAULT.model.positions, settings.POSITIONS)
    ] = None,
    tokenizer: Annotated[
        str | None, _flag("Tokens.", "char; translation, lm: bpe", settings.TOKENIZERS)
    ] = None,
    seed: Annotated[int | None, _flag("One seed for every random stream.", DEFAULT.seed)] = None,
    steps: Annotated[int | None, _flag("Optimizer steps.", "by task, 600 to 1300")] = None,
    batch_size: Annotated[
        int | None, _flag("Examples per micro-batch, all ranks.", DEFAULT.batch_size)
    ] = None,
    accumulate: Annotated[int | None, _flag("Micro-batches per step.", DEFAULT.accumulate)] = None,
    amp: Annotated[str | None, _flag("Mixed precision.", DEFAULT.amp, settings.AMP_MODES)] = None,
    dtype: Annotated[str | None, _flag("Parameter dtype.", DEFAULT.dtype, settings.DTYPES)] = None,
    lr: Annotated[float | None, _flag("Peak learning rate.", DEFAULT.optim.lr)] = None,
    warmup: Annotated[
        int | None, _flag("Warm-up steps, a tenth of all at most.", DEFAULT.optim.warmup)
    ] = None,
    clip: Annotated[
        float | None, _flag("Largest global gradient norm.", DEFAULT.optim.clip)
    ] = None,
    weight_decay: Annotated[
        float | None, _flag("Decay of matrices.", DEFAULT.optim.weight_decay)
    ] = None,
    label_smoothing: Annotated[
        float | None, _flag("Label smoothing.", DEFAULT.optim.label_smoothing)
    ] = None,
    d_model: Annotated[
        int | None, _flag("Model width; the feed-forward has twice that.", DEFAULT.model.d_model)
    ] = None,
    layers: Annotated[int | None, _flag("Layers per stack.", DEFAULT.model.num_layers)] = None,
    heads: Annotated[int | None, _flag("Attention heads.", DEFAULT.model.num_heads)] = None,
    dropout: Annotated[float | None, _flag("Dropout.", DEFAULT.model.dropout)] = None,
    num_train: Annotated[int | None, _flag("Training examples.", DEFAULT.data.num_train)] = None,
    num_eval: Annotated[
        int | None, _flag("Validation examples, and as many for the test.", DEFAULT.data.num_val)
    ] = None,
    eval_every: Annotated[
        int | None, _flag("Steps between evaluations.", DEFAULT.eval_every)
    ] = None,
    patience: Annotated[
        int | None, _flag("Evaluations without gain before stopping; 0: never.", settings.PATIENCE)
    ] = None,
    min_delta: Annotated[
        float | None, _flag("Smallest gain that counts.", DEFAULT.min_delta)
    ] = None,
    overfit_batch: Annotated[
        int | None, _flag("Train on the first N batches only, dropout and augmentation off.")
    ] = None,
    disable_dropout: Annotated[bool, typer.Option("--disable-dropout", help="No dropout.")] = False,
    disable_amp: Annotated[
        bool, typer.Option("--disable-amp", help="No mixed precision, whatever --amp says.")
    ] = False,
    disable_augment: Annotated[
        bool, typer.Option("--disable-augment", help="No augmentation.")
    ] = False,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Only kernels that repeat bit for bit.")
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Check the pipeline's properties and make a short run in float64."
        ),
    ] = False,
    resume: Annotated[
        Path | None, _flag("Go on from this checkpoint, or from the last one of this folder.")
    ] = None,
    out: Annotated[
        Path | None, _flag("Folder for checkpoints and log.", "runs/TASK, or the resumed run's")
    ] = None,
    stop_after: Annotated[
        int | None, _flag("Save and end at step N; the schedule stays that of --steps.")
    ] = None,
    save_every: Annotated[
        int | None, _flag("Steps between checkpoints.", RunOptions().save_every)
    ] = None,
    device: Annotated[
        str | None, _flag("Where to train; auto: cuda if there is one.", "cpu", DEVICES)
    ] = None,
    workers: Annotated[int | None, _flag("Data loader processes.", 0)] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the result there.", metavar="FILE")
    ] = None,
    write: Annotated[
        Path | None, _flag("Put the pipeline there as plain files that need no Sawbones, and end.")
    ] = None,
) -> None:
    flags = dict(locals())
    if write is not None:
        _write_files(write)
    else:
        train(flags)


def _write_files(folder: Path) -> None:
    from sawbones.handover import trainer_files

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"--write {folder} is there already: name another")
    _check_writable(folder, "--write")
    number = trainer_files.write(folder)
    print(f"wrote {number} files to {folder}. Try them: sh {folder / 'demo_run.sh'}")


def _merge(config: TrainConfig, flags: dict[str, Any]) -> TrainConfig:
    """The configuration with every given flag in its place."""
    given = {name: value for name, value in flags.items() if value is not None}

    def pick(**places: str) -> dict[str, Any]:
        return {field: given[flag] for field, flag in places.items() if flag in given}

    plain = (
        "seed",
        "steps",
        "batch_size",
        "accumulate",
        "amp",
        "dtype",
        "eval_every",
        "patience",
        "min_delta",
    )
    data = replace(
        config.data,
        **pick(
            tokenizer="tokenizer",
            seed="seed",
            num_train="num_train",
            num_val="num_eval",
            num_test="num_eval",
        ),
    )
    names = {"arch": "arch", "positions": "positions", "d_model": "d_model", "dropout": "dropout"}
    model = replace(config.model, **pick(**names, num_layers="layers", num_heads="heads"))
    if "d_model" in given:
        model = replace(model, d_ff=2 * model.d_model)
    optim_names = ("lr", "warmup", "clip", "weight_decay", "label_smoothing")
    optim = replace(config.optim, **pick(**{name: name for name in optim_names}))
    merged = replace(
        config, data=data, model=model, optim=optim, **pick(**{name: name for name in plain})
    )
    if flags["deterministic"]:
        merged = replace(merged, deterministic=True)
    if flags["disable_amp"]:
        merged = replace(merged, amp="off")
    if flags["disable_dropout"]:
        merged = replace(merged, model=replace(merged.model, dropout=0.0))
    if flags["disable_augment"]:
        merged = replace(merged, data=replace(merged.data, augment=0.0))
    if given.get("overfit_batch") is not None:
        merged = settings.without_noise(replace(merged, overfit_batch=given["overfit_batch"]))
    return settings.for_verification(merged) if flags["verify"] else merged


def _new_config(flags: dict[str, Any]) -> TrainConfig:
    return _merge(settings.defaults_for(flags["task"] or DEFAULT.data.task), flags)


def _resumed_config(flags: dict[str, Any]) -> TrainConfig:
    """The checkpoint's own configuration; a flag may repeat it, not change it."""
    from sawbones.trainer import checkpoint

    saved = checkpoint.load(flags["resume"])
    stored = settings.from_json(saved.state["config"])
    if flags["task"] not in (None, stored.data.task):
        raise ConfigError(
            f"--resume: {saved.path} is a {stored.data.task} run, not {flags['task']}"
        )
    if changed := settings.differences(_merge(stored, flags), stored):
        raise ConfigError(
            f"--resume cannot change {'; '.join(changed)}. Leave the flag out, or start a new run"
        )
    if flags["stop_after"] is not None and flags["stop_after"] <= saved.state["step"]:
        raise ConfigError(
            f"--stop-after {flags['stop_after']}: {saved.path} is already at step "
            f"{saved.state['step']}"
        )
    return stored


def _check_writable(path: Path, what: str) -> None:
    """Try the nearest existing folder with a file that leaves no trace."""
    folder = path
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise ConfigError(f"{what} {path}: {folder} is a file, not a folder")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(f"{what} {path}: cannot write in {folder} ({error.strerror})") from None


def _options(flags: dict[str, Any], config: TrainConfig) -> RunOptions:
    resume: Path | None = flags["resume"]
    beside = None if resume is None else resume if resume.is_dir() else resume.parent
    out = flags["out"] or beside or Path("runs") / config.data.task
    device = flags["device"] or "cpu"
    if device not in DEVICES:
        raise ConfigError(f"device is {device!r}; it must be one of {', '.join(DEVICES)}")
    for name in ("stop_after", "save_every"):
        if flags[name] is not None and flags[name] < 1:
            raise ConfigError(f"{name.replace('_', '-')} is {flags[name]}; it must be at least 1")
    if (flags["workers"] or 0) < 0:
        raise ConfigError(f"workers is {flags['workers']}; it must be at least 0")
    _check_writable(out, "--out")
    if flags["json_file"] is not None:
        if flags["json_file"].is_dir():
            raise ConfigError(f"--json {flags['json_file']} is a folder, not a file")
        _check_writable(flags["json_file"].parent, "--json")
    return RunOptions(
        out=out,
        resume=resume,
        stop_after=flags["stop_after"],
        save_every=flags["save_every"] or RunOptions().save_every,
        device="cpu" if flags["verify"] else device,
        workers=flags["workers"] or 0,
        arguments=tuple(sys.argv[1:]),
    )


def train(flags: dict[str, Any]) -> None:
    """Everything that can be refused is refused before torch is loaded or a file is written."""
    config = _resumed_config(flags) if flags["resume"] is not None else _new_config(flags)
    settings.check(config)
    options = _options(flags, config)
    # Threads that spin while they wait for each other make a small model crawl on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

    import torch

    from sawbones.trainer.loop import run_training

    if options.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: torch sees no CUDA device here. Use --device cpu")
    is_main = os.environ.get("RANK", "0") == "0"
    if flags["verify"] and is_main:
        _verify(config, options)
    result = run_training(config, options)
    if is_main:
        _report(config, result, flags["json_file"])


def _verify(config: TrainConfig, options: RunOptions) -> None:
    from sawbones.trainer.verification import verify_pipeline

    found = verify_pipeline(config, options)
    for item in found:
        print(
            f"{'ok' if item.holds else 'FAILED'}  {item.name}: {item.difference:.1e} (at "
            f"most {item.tolerance:.0e})"
        )
    if broken := [item.name for item in found if not item.holds]:
        raise TrainerError(f"--verify: does not hold: {'; '.join(broken)}")


def _report(config: TrainConfig, result: RunResult, json_file: Path | None) -> None:
    from sawbones.trainer.checkpoint import write_atomically
    from sawbones.trainer.provenance import versions

    is_lm = config.data.task == "lm"
    val_metric = result.val.loss if is_lm else result.val.free_sequence_accuracy
    named = f"loss {val_metric:.4f}" if is_lm else f"free-running sequences {val_metric:.2%}"
    print(
        f"{result.steps} steps in {result.seconds:.1f} s, train loss "
        f"{result.final_train_loss:.4f}, validation {named}"
    )
    print(f"checkpoint {result.checkpoint.path}  sha256 {result.checkpoint.sha256}")
    if json_file is None:
        return
    record = {
        "seed": config.seed,
        "checkpoint": str(result.checkpoint.path),
        "checkpoint_sha256": result.checkpoint.sha256,
        # NaN is no JSON; a last step that the loss scaler skipped has no finite loss.
        "final_train_loss": result.final_train_loss
        if math.isfinite(result.final_train_loss)
        else None,
        "final_val_metric": val_metric,
        "steps": result.steps,
        "seconds": round(result.seconds, 3),
        "versions": versions(),
    }
    json_file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(json_file, json.dumps(record, indent=1).encode() + b"\n")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _given(error: Exception, args: list[str]) -> str:
    """The value of the flag that was refused; some versions of typer do not name it."""
    for flag in getattr(getattr(error, "param", None), "opts", ()):
        for word, after in zip(args, [*args[1:], ""], strict=True):
            if word == flag:
                return f" ({flag} {after})"
            if word.startswith(f"{flag}="):
                return f" ({word})"
    return ""


def run(args: list[str]) -> None:
    """Exit 0 when the run went through, 1 when training failed, 2 when it could not start."""
    try:
        typer.main.get_command(app).main(args=args, prog_name=PROGRAM, standalone_mode=False)
        if ctrl_c.came():  # typer has taken it for an ordinary end
            raise KeyboardInterrupt
    except TrainerError as error:
        print(f"{PROGRAM}: {_one_line(str(error))}", file=sys.stderr)
        raise SystemExit(
            1 if isinstance(error, TrainingDiverged) or type(error) is TrainerError else 2
        ) from None
    except OSError as error:
        print(f"{PROGRAM}: {_one_line(str(error))}", file=sys.stderr)
        raise SystemExit(2) from None
    except Exception as error:
        # typer brings its own copy of click in newer versions, so the class of a usage error
        # depends on the version.
        describe = getattr(error, "format_message", None)
        if describe is None:
            raise
        print(
            f"{PROGRAM}: {_one_line(describe()).rstrip('.')}{_given(error, args)}. All flags: "
            f"{PROGRAM} --help",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
