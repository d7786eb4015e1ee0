"""All the parts of one run put together, and their whole state out of and into a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from .checkpoint import Checkpoint, pack_optimizer, unpack_optimizer
from .config import RunOptions, TrainConfig, check, to_json
from .data import TaskData, build_data, train_sampler
from .determinism import capture_rng, restore_rng, seed_everything, use_deterministic_kernels
from .distributed import Ranks
from .errors import CheckpointError
from .model import Transformer, build_model
from .optimization import build_optimizer, build_schedule
from .precision import Precision
from .sampling import BatchStream
from .stopping import EarlyStopping
from .tokenization import check_same


@dataclass
class Pipeline:
    config: TrainConfig
    ranks: Ranks
    device: torch.device
    data: TaskData
    stream: BatchStream
    model: Transformer  # the bare model: evaluation, checkpoints
    wrapped: nn.Module  # what training calls: the model, inside DDP when there are several ranks
    optimizer: AdamW
    schedule: LambdaLR
    precision: Precision
    stopping: EarlyStopping
    step: int = 0
    last_loss: float = float("nan")


def build_pipeline(
    config: TrainConfig, options: RunOptions, ranks: Ranks, device: torch.device
) -> Pipeline:
    check(config)
    use_deterministic_kernels(config.deterministic)
    seed_everything(config.seed, ranks.rank)
    data = build_data(config)
    stream = BatchStream(
        data.train,
        train_sampler(config, data.train, ranks.rank, ranks.world_size),
        workers=options.workers,
        pin_memory=device.type == "cuda",
    )
    model = build_model(
        replace(config.model, vocab_size=data.tokenizer.vocab_size),
        device,
        getattr(torch, config.dtype),
    )
    optimizer = build_optimizer(model, config.optim)
    return Pipeline(
        config=config,
        ranks=ranks,
        device=device,
        data=data,
        stream=stream,
        model=model,
        wrapped=ranks.wrap(model, device),
        optimizer=optimizer,
        schedule=build_schedule(optimizer, config.optim, config.steps),
        precision=Precision(config.amp, device),
        stopping=EarlyStopping(config.patience, config.min_delta),
    )


def capture(pipeline: Pipeline) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Every rank must call it: each has generators of its own. Equal runs give equal bytes."""
    tensors = {f"model/{name}": tensor for name, tensor in pipeline.model.state_dict().items()}
    moments, groups = pack_optimizer(pipeline.optimizer)
    tensors.update({f"optimizer/{name}": tensor for name, tensor in moments.items()})
    generators = []
    for rank, (rng_tensors, rng_record) in enumerate(
        pipeline.ranks.gather(capture_rng(pipeline.device))
    ):
        tensors.update({f"rng/{rank}/{name}": tensor for name, tensor in rng_tensors.items()})
        generators.append(rng_record)
    schedule = {k: v for k, v in pipeline.schedule.state_dict().items() if k != "lr_lambdas"}
    state = {
        "config": to_json(pipeline.config),
        "step": pipeline.step,
        "last_loss": pipeline.last_loss,
        "stream": pipeline.stream.position(),
        "optimizer_groups": groups,
        "schedule": schedule,
        "precision": pipeline.precision.state(),
        "stopping": pipeline.stopping.state(),
        "generators": generators,
        "tokenizer": pipeline.data.tokenizer.to_json(),
        "data_sha256": pipeline.data.sha256,
    }
    return tensors, state


def restore(pipeline: Pipeline, saved: Checkpoint) -> None:
    """Checks that data and tokenizer are the ones trained on before anything is changed."""
    state = saved.state
    check_same(state["tokenizer"], pipeline.data.tokenizer.to_json())
    if state["data_sha256"] != pipeline.data.sha256:
        raise CheckpointError(
            f"{saved.path} was trained on other data than this configuration gives "
            "(SHA-256 differs)"
        )
    if len(state["generators"]) != pipeline.ranks.world_size:
        count = len(state["generators"])
        raise CheckpointError(
            f"{saved.path} was written by {count} ranks; resume it with torchrun "
            f"--nproc-per-node {count}"
        )
    pipeline.model.load_state_dict(saved.part("model"))
    unpack_optimizer(pipeline.optimizer, saved.part("optimizer"), state["optimizer_groups"])
    pipeline.schedule.load_state_dict(
        {**state["schedule"], "lr_lambdas": [None] * len(state["optimizer_groups"])}
    )
    pipeline.precision.restore(state["precision"])
    pipeline.stopping.restore(state["stopping"])
    pipeline.stream.seek(state["stream"])
    pipeline.step = int(state["step"])
    pipeline.last_loss = float(state["last_loss"])
    rank = pipeline.ranks.rank
    restore_rng(saved.part(f"rng/{rank}"), state["generators"][rank], pipeline.device)
