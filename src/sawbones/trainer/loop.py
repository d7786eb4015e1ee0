"""The training loop: fetch, accumulate, unscale, clip, step, schedule; evaluate, save, stop."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from . import checkpoint
from .collation import Batch
from .config import RunOptions, TrainConfig
from .distributed import Ranks, from_environment, pick_device, process_group
from .errors import TrainingDiverged
from .evaluation import Metrics, evaluate
from .loss import check_ignored_share, token_loss_sum
from .metrics_log import MetricsLog, Progress, memory_mib, pick_progress
from .optimization import gradient_norms
from .pipeline import Pipeline, build_pipeline, capture, restore
from .precision import Precision
from .provenance import provenance

MAX_SKIPS_IN_A_ROW = (
    30  # by then the scale has fallen by 2**30: the gradients are broken, not the scale
)


@dataclass(frozen=True)
class RunResult:
    checkpoint: checkpoint.SavedCheckpoint
    steps: int
    final_train_loss: float
    val: Metrics
    test: Metrics | None  # measured once, when the run is complete: nothing is selected by it
    skipped_steps: int
    tokens_per_s: float
    seconds: float


def accumulate_gradients(
    model: nn.Module,
    batches: Sequence[Batch],
    precision: Precision,
    ranks: Ranks,
    num_targets: float,
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """Add to .grad the gradient of the mean loss over `num_targets`, the targets of all
    micro-batches of all ranks.

    Dividing each micro-batch by its own count would give short ones too much weight. Returns this
    rank's loss sum.
    """
    total = torch.zeros(
        (), device=precision.device, dtype=torch.float64 if _on_cpu(precision) else torch.float32
    )
    for i, batch in enumerate(batches):
        is_last = i == len(batches) - 1
        with nullcontext() if is_last else ranks.unsynchronised(model):
            with precision.autocast():
                logits = model(
                    batch.source_BS,
                    batch.source_mask_BS,
                    batch.decoder_input_BT,
                    batch.decoder_mask_BT,
                )
                loss_sum = token_loss_sum(logits, batch.labels_BT, label_smoothing)
            # DDP averages gradients over ranks; the count is already over all of them.
            precision.backward(loss_sum * (ranks.world_size / num_targets))
        total += loss_sum.detach()
    return total


def _on_cpu(precision: Precision) -> bool:
    return precision.device.type == "cpu"


def train_step(pipeline: Pipeline) -> dict[str, Any]:
    """One optimizer step over `accumulate` micro-batches; what the log says about it."""
    config, precision, ranks = pipeline.config, pipeline.precision, pipeline.ranks
    started = time.perf_counter()
    batches = [next(pipeline.stream) for _ in range(config.accumulate)]
    waited = time.perf_counter() - started
    for batch in batches:
        check_ignored_share(batch.labels_BT, batch.decoder_mask_BT)
    local_targets = float(sum(batch.num_targets for batch in batches))
    (num_targets,) = ranks.total([local_targets], pipeline.device)
    lr = float(pipeline.optimizer.param_groups[0]["lr"])

    pipeline.wrapped.train()
    pipeline.optimizer.zero_grad(set_to_none=True)
    loss_sum = accumulate_gradients(
        pipeline.wrapped,
        [batch.to(pipeline.device) for batch in batches],
        precision,
        ranks,
        num_targets,
        config.optim.label_smoothing,
    )
    precision.unscale(pipeline.optimizer)
    layer_norms = gradient_norms(pipeline.model.named_parameters())
    norm = nn.utils.clip_grad_norm_(pipeline.model.parameters(), config.optim.clip)
    (total_loss,) = ranks.total([float(loss_sum)], pipeline.device)
    loss = total_loss / num_targets
    norms = torch.stack([norm, *layer_norms.values()]).tolist()
    if not precision.may_skip and not (math.isfinite(loss) and math.isfinite(norms[0])):
        raise TrainingDiverged(
            f"step {pipeline.step}: loss {loss}, gradient norm {norms[0]}; no step was taken. "
            f"Try a tenth of the learning rate: --lr {config.optim.lr / 10:g}"
        )
    taken = precision.step(pipeline.optimizer)
    if taken:
        pipeline.schedule.step()
    pipeline.step += 1
    pipeline.last_loss = loss
    seconds = time.perf_counter() - started
    return {
        "step": pipeline.step,
        "loss": loss,
        "lr": lr,
        "grad_norm": norms[0],
        "layer_grad_norms": {
            k: v if math.isfinite(v) else str(v)
            for k, v in zip(layer_norms, norms[1:], strict=True)
        },
        "scale": precision.scale(),
        "step_taken": taken,
        "skipped_steps": precision.skipped,
        "tokens": int(num_targets),
        "tokens_per_s": round(num_targets / seconds, 1),
        "step_ms": round(1000 * seconds, 3),
        "data_wait_ms": round(1000 * waited, 3),
        "memory_mib": memory_mib(pipeline.device),
    }


def score(config: TrainConfig, metrics: Metrics) -> float:
    """What selection maximises: whole free-running sequences, or the likelihood of text that has
    many continuations.
    """
    return -metrics.loss if config.data.task == "lm" else metrics.free_sequence_accuracy


class Run:
    """One process's part of a training run: the pipeline plus its folder, log and progress."""

    def __init__(self, pipeline: Pipeline, options: RunOptions, quiet: bool) -> None:
        self.pipeline = pipeline
        self.options = options
        self.is_main = pipeline.ranks.is_main
        resumed = pipeline.step if options.resume is not None else None
        self.log = MetricsLog(options.out / "log.jsonl", resumed) if self.is_main else None
        self.goal = min(pipeline.config.steps, options.stop_after or pipeline.config.steps)
        self.progress: Progress = pick_progress(self.goal, pipeline.step, self.is_main, quiet)
        self.saved: checkpoint.SavedCheckpoint | None = None

    def write(self, record: dict[str, Any]) -> None:
        if self.log is not None:
            self.log.write(record)

    def evaluate(self, split: str) -> Metrics:
        pipeline = self.pipeline
        dataset = pipeline.data.val if split == "val" else pipeline.data.test
        metrics = evaluate(pipeline.model, dataset, pipeline.precision, pipeline.ranks)
        self.write({"event": split, "step": pipeline.step, **metrics.to_json()})
        self.progress.say(
            f"{split} at step {pipeline.step}: loss {metrics.loss:.4f}, tokens "
            f"{metrics.token_accuracy:.2%}, "
            f"free-running sequences {metrics.free_sequence_accuracy:.2%}"
        )
        return metrics

    def save(self) -> checkpoint.SavedCheckpoint:
        pipeline, options = self.pipeline, self.options
        tensors, state = capture(pipeline)
        saved = None
        if self.is_main:
            config = pipeline.config
            origin = provenance(
                config.seed, options.arguments, pipeline.data.sha256, str(pipeline.device)
            )
            saved = checkpoint.save(options.out, pipeline.step, tensors, state, origin)
            checkpoint.point(options.out, "last", saved)
            if pipeline.stopping.best_step == pipeline.step:
                checkpoint.point(options.out, "best", saved, score=pipeline.stopping.best)
            checkpoint.prune(options.out, options.keep)
        self.saved = pipeline.ranks.gather(saved)[0]
        assert self.saved is not None
        return self.saved

    def train(self) -> tuple[Metrics | None, float, float]:
        """Run to the goal. Returns the validation of the last step if there was one, tokens and
        seconds of training.
        """
        pipeline, config = self.pipeline, self.pipeline.config
        metrics, tokens, seconds, skips_in_a_row = None, 0.0, 0.0, 0
        while pipeline.step < self.goal and not pipeline.stopping.should_stop:
            record = train_step(pipeline)
            self.write(record)
            self.progress.step(pipeline.step, record)
            tokens, seconds = tokens + record["tokens"], seconds + record["step_ms"] / 1000
            skips_in_a_row = 0 if record["step_taken"] else skips_in_a_row + 1
            if skips_in_a_row > MAX_SKIPS_IN_A_ROW:
                raise TrainingDiverged(
                    f"step {pipeline.step}: {skips_in_a_row} steps in a row skipped by "
                    "the loss scaler"
                )
            metrics = None
            is_best = False
            if pipeline.step % config.eval_every == 0 or pipeline.step == config.steps:
                metrics = self.evaluate("val")
                is_best = pipeline.stopping.update(score(config, metrics), pipeline.step)
            ends = pipeline.step == self.goal or pipeline.stopping.should_stop
            if ends or is_best or pipeline.step % self.options.save_every == 0:
                self.save()
        return metrics, tokens, seconds

    def close(self) -> None:
        self.progress.close()
        if self.log is not None:
            self.log.close()


def move_earlier_run(folder: Path) -> None:
    """A new run in a used folder: the earlier run goes to `previous`, so that its checkpoints are
    never mixed in.
    """
    own = [
        p
        for pattern in ("step-*.safetensors", "step-*.json", "last.json", "best.json", "log.jsonl")
        for p in folder.glob(pattern)
    ]
    if not own:
        return
    target = folder / "previous"
    target.mkdir(exist_ok=True)
    for old in target.iterdir():
        if old.is_file():
            old.unlink()
    for path in own:
        path.replace(target / path.name)


def run_training(config: TrainConfig, options: RunOptions, quiet: bool = False) -> RunResult:
    """Train (or resume) to the end or to `stop_after`; under torchrun, one call per rank."""
    started = time.perf_counter()
    ranks = from_environment()
    device = pick_device(options.device, ranks)
    with process_group(ranks, device):
        pipeline = build_pipeline(config, options, ranks, device)
        resumed = checkpoint.load(options.resume) if options.resume is not None else None
        if resumed is not None:
            restore(pipeline, resumed)
        if ranks.is_main:
            options.out.mkdir(parents=True, exist_ok=True)
            if resumed is None:
                move_earlier_run(options.out)
        ranks.barrier()
        run = Run(pipeline, options, quiet)
        try:
            val, tokens, training_seconds = run.train()
            saved = run.saved or run.save()
            complete = pipeline.step >= config.steps or pipeline.stopping.should_stop
            # After the checkpoint and outside early stopping: an evaluation for the report must not
            # change the run.
            val = val or run.evaluate("val")
            test = run.evaluate("test") if complete else None
        finally:
            run.close()
    return RunResult(
        checkpoint=saved,
        steps=pipeline.step,
        final_train_loss=pipeline.last_loss,
        val=val,
        test=test,
        skipped_steps=pipeline.precision.skipped,
        tokens_per_s=tokens / training_seconds if training_seconds else 0.0,
        seconds=time.perf_counter() - started,
    )
