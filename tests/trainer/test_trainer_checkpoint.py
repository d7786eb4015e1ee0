"""Checkpoints, resuming, determinism: whole runs, real files, new processes."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace

import pytest
import torch

from sawbones.trainer import checkpoint
from sawbones.trainer.config import RunOptions, differences, from_json, to_json
from sawbones.trainer.determinism import capture_rng, derive_seed, restore_rng, seed_everything
from sawbones.trainer.errors import CheckpointError, ConfigError
from sawbones.trainer.loop import run_training


def run(config, out, **options):
    return run_training(config, RunOptions(out=out, **options), quiet=True)


@pytest.fixture
def two_checkpoints(make_config, tmp_path):
    run(make_config(steps=4), tmp_path, save_every=2)
    return checkpoint.list_steps(tmp_path)


def test_two_runs_give_the_same_hash_and_another_seed_another(make_config, tmp_path):
    config = make_config(task="translation")
    hashes = [
        run(c, tmp_path / str(i)).checkpoint.sha256
        for i, c in enumerate((config, config, replace(config, seed=4)))
    ]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize("task", ["reverse", "lm"])
def test_resuming_in_the_middle_of_an_epoch_is_exact(make_config, tmp_path, task):
    config = make_config(task=task, amp="fp16", accumulate=3, steps=8, eval_every=2)
    whole = run(config, tmp_path / "whole")
    first = run(config, tmp_path / "parts", stop_after=5)  # 15 batches of 12 an epoch
    assert first.steps == 5 and first.test is None
    rest = run(config, tmp_path / "parts", resume=tmp_path / "parts")
    assert rest.checkpoint.sha256 == whole.checkpoint.sha256
    assert rest.final_train_loss == whole.final_train_loss
    logs = [(tmp_path / name / "log.jsonl").read_text().splitlines() for name in ("whole", "parts")]
    losses = [[(r["step"], r["loss"]) for r in map(json.loads, log) if "lr" in r] for log in logs]
    assert losses[0] == losses[1]


def test_a_resume_that_forgets_the_generators_is_not_exact(make_config, tmp_path, monkeypatch):
    config = make_config(steps=6)
    whole = run(config, tmp_path / "whole")
    run(config, tmp_path / "parts", stop_after=3)
    monkeypatch.setattr("sawbones.trainer.pipeline.restore_rng", lambda *_: None)
    rest = run(config, tmp_path / "parts", resume=tmp_path / "parts")
    assert rest.checkpoint.sha256 != whole.checkpoint.sha256


def test_a_truncated_file_is_refused_and_the_previous_one_offered(two_checkpoints):
    older, newer = two_checkpoints
    newer.write_bytes(newer.read_bytes()[:-100])
    with pytest.raises(CheckpointError) as caught:
        checkpoint.load(newer.parent)
    assert "is truncated" in str(caught.value) and str(older) in str(caught.value)
    checkpoint.load(older)


def test_an_altered_file_or_record_is_refused(two_checkpoints):
    older, newer = two_checkpoints
    data = bytearray(newer.read_bytes())
    data[-5] ^= 1
    newer.write_bytes(data)
    with pytest.raises(CheckpointError, match="was altered: its SHA-256 is"):
        checkpoint.load(newer)
    record = older.with_suffix(".json")
    record.write_text(record.read_text().replace('"seed": 3', '"seed": 4'))
    with pytest.raises(
        CheckpointError, match=r"json is truncated or was altered.*No good checkpoint is left"
    ):
        checkpoint.load(older)
    record.unlink()
    with pytest.raises(CheckpointError, match="has no record"):
        checkpoint.load(older)


def test_a_missing_checkpoint_names_its_neighbours(two_checkpoints, tmp_path):
    with pytest.raises(
        CheckpointError, match=r"no checkpoint at .*Checkpoints nearby: .*step-000002"
    ):
        checkpoint.load(tmp_path / "step-000009.safetensors")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match="no checkpoint in"):
        checkpoint.load(tmp_path / "empty")


def test_nothing_is_unpickled(two_checkpoints, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    assert checkpoint.load(two_checkpoints[0]).state["step"] == 2


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    checkpoint.write_atomically(path, b"old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        checkpoint.write_atomically(path, b"new")
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["file"]


def test_provenance_and_state_are_complete(two_checkpoints):
    saved = checkpoint.load(two_checkpoints[-1])
    assert {"seed", "arguments", "git_commit", "versions", "data_sha256", "time"} <= set(
        saved.provenance
    )
    needed = {
        "config",
        "step",
        "stream",
        "optimizer_groups",
        "schedule",
        "precision",
        "generators",
        "tokenizer",
    }
    assert needed <= set(saved.state)
    assert saved.part("model") and saved.part("optimizer") and saved.part("rng/0")


def test_best_and_last_are_kept_and_the_rest_pruned(make_config, tmp_path):
    config = make_config(task="lm", steps=8, eval_every=2)
    run(config, tmp_path, save_every=1, keep=2)
    best = json.loads((tmp_path / "best.json").read_text())
    last = json.loads((tmp_path / "last.json").read_text())
    assert last["checkpoint"] == "step-000008.safetensors"
    assert (tmp_path / best["checkpoint"]).exists() and math.isfinite(best["score"])
    assert len(checkpoint.list_steps(tmp_path)) in (2, 3)


def test_early_stopping_ends_the_run(make_config, tmp_path):
    config = make_config(steps=50, eval_every=1, patience=2, min_delta=1.0)
    result = run(config, tmp_path)
    assert result.steps == 3 and result.test is not None


def test_a_new_run_moves_the_earlier_one_aside(make_config, tmp_path):
    first = run(make_config(steps=4), tmp_path)
    run(make_config(steps=2), tmp_path)
    assert [p.name for p in checkpoint.list_steps(tmp_path)] == ["step-000002.safetensors"]
    assert checkpoint.load(tmp_path / "previous").sha256 == first.checkpoint.sha256


def test_other_data_or_rank_counts_are_refused(make_config, make_pipeline, two_checkpoints):
    from sawbones.trainer.distributed import Ranks
    from sawbones.trainer.pipeline import restore

    saved = checkpoint.load(two_checkpoints[0])
    config = make_config()
    with pytest.raises(CheckpointError, match="trained on other data"):
        restore(make_pipeline(replace(config, data=replace(config.data, num_val=23))), saved)
    pipeline = make_pipeline(config)
    pipeline.ranks = Ranks(0, 2)
    with pytest.raises(CheckpointError, match="written by 1 ranks; resume it with torchrun"):
        restore(pipeline, saved)


def test_configurations_round_trip_and_differences_are_named(make_config):
    config = make_config()
    assert from_json(json.loads(json.dumps(to_json(config)))) == config
    assert differences(replace(config, steps=9), config) == ["steps: 9, was 6"]
    with pytest.raises(ConfigError, match="unknown keys"):
        from_json({**to_json(config), "surprise": 1})


def test_one_seed_sets_every_stream_and_ranks_differ():
    import random

    import numpy as np

    def draw():
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    seed_everything(7)
    first = draw()
    state = capture_rng(torch.device("cpu"))
    second = draw()
    restore_rng(*state, torch.device("cpu"))
    assert draw() == second
    seed_everything(7)
    assert draw() == first
    seed_everything(7, rank=1)
    assert all(a != b for a, b in zip(draw(), first, strict=True))
    assert derive_seed(0, "rank", 1) != derive_seed(1, "rank", 0)
