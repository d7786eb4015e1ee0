"""Loss, optimizer, schedule, precision, accumulation, evaluation, early stopping."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from sawbones.trainer.collation import IGNORE_INDEX, Encoded, collate
from sawbones.trainer.config import ARCHS, OptimConfig, without_noise
from sawbones.trainer.distributed import Ranks
from sawbones.trainer.errors import BatchError, TrainingDiverged
from sawbones.trainer.evaluation import eval_mode, evaluate, matches
from sawbones.trainer.loop import train_step
from sawbones.trainer.loss import check_ignored_share, target_weight, token_loss_sum
from sawbones.trainer.metrics_log import MetricsLog
from sawbones.trainer.optimization import (
    build_optimizer,
    build_schedule,
    decay_groups,
    gradient_norms,
    layer_of,
    warmup_cosine,
)
from sawbones.trainer.precision import Precision
from sawbones.trainer.stopping import EarlyStopping
from sawbones.trainer.verification import accumulation_difference

CPU = torch.device("cpu")


def test_loss_is_torchs_mean_with_padding_smoothing_and_weights():
    logits, labels = torch.randn(3, 4, 7, dtype=torch.float64), torch.randint(0, 7, (3, 4))
    labels[1, 2:] = IGNORE_INDEX
    weights = torch.rand(7, dtype=torch.float64) + 0.5
    for smoothing, class_weights in ((0.0, None), (0.1, None), (0.1, weights)):
        expected = nn.functional.cross_entropy(
            logits.flatten(0, 1),
            labels.flatten(),
            weight=class_weights,
            label_smoothing=smoothing,
            ignore_index=-100,
        )
        ours = token_loss_sum(logits, labels, smoothing, class_weights) / target_weight(
            labels, class_weights
        )
        assert torch.allclose(ours, expected, atol=1e-12)


def test_half_precision_logits_are_summed_in_float32():
    logits, labels = torch.randn(40, 50, 7), torch.randint(0, 7, (40, 50))
    assert token_loss_sum(logits.half(), labels).dtype == torch.float32


def test_ignored_share_must_equal_the_padding_share():
    batch = collate([Encoded((5,), (5,)), Encoded((5, 6), (5, 6, 7))])
    check_ignored_share(batch.labels_BT, batch.decoder_mask_BT)
    hidden = batch.labels_BT.clone()
    hidden[0, 0] = IGNORE_INDEX
    with pytest.raises(BatchError, match=r"11 of 16 targets are ignored, but 10 are padding"):
        check_ignored_share(hidden, batch.decoder_mask_BT)


def test_norms_and_biases_do_not_decay(make_config, make_pipeline):
    model = make_pipeline(make_config()).model
    decayed, rest = decay_groups(model)
    assert len(decayed) + len(rest) == len(list(model.parameters()))
    flat = {id(p) for p in rest}
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            assert {id(module.weight), id(module.bias)} <= flat
        if isinstance(module, nn.Linear):
            assert id(module.weight) not in flat
    groups = build_optimizer(model, OptimConfig(weight_decay=0.3)).param_groups
    assert [group["weight_decay"] for group in groups] == [0.3, 0.0]


def test_schedule_warms_up_and_follows_the_cosine():
    share = warmup_cosine(4, 20, 0.1)
    assert [share(t) for t in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert share(4) == 1.0 and share(12) == pytest.approx(0.55) and share(20) == pytest.approx(0.1)
    assert share(500) == pytest.approx(0.1), "never rises again"


def test_schedule_drives_the_optimizer():
    optimizer = build_optimizer(nn.Linear(2, 2), OptimConfig(lr=1.0, warmup=4))
    schedule = build_schedule(optimizer, OptimConfig(lr=1.0, warmup=4), 100)
    seen = []
    for _ in range(5):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert seen == [0.25, 0.5, 0.75, 1.0, 1.0]


@pytest.mark.parametrize("arch", ARCHS)
def test_micro_batches_give_the_gradient_of_one_batch(make_config, make_pipeline, arch):
    assert accumulation_difference(make_pipeline(make_config(arch=arch, dtype="float64"))) < 1e-12


def test_the_accumulation_check_can_fail(make_config, make_pipeline, monkeypatch):
    from sawbones.trainer import verification
    from sawbones.trainer.loop import accumulate_gradients

    def mean_of_means(model, batches, precision, ranks, num_targets):
        for batch in batches:
            accumulate_gradients(model, [batch], precision, ranks, batch.num_targets * len(batches))

    monkeypatch.setattr(verification, "accumulate_gradients", mean_of_means)
    assert accumulation_difference(make_pipeline(make_config(dtype="float64"))) > 1e-4


def test_gradients_are_clipped_after_unscaling(make_config, make_pipeline):
    config = make_config(amp="fp16")
    pipeline = make_pipeline(replace(config, optim=replace(config.optim, clip=0.05)))
    record = train_step(pipeline)
    clipped = torch.nn.utils.get_total_norm([p.grad for p in pipeline.model.parameters()])
    assert record["scale"] == 65536 and record["step_taken"]
    assert clipped.item() == pytest.approx(0.05, rel=1e-3), (
        "clipping scaled gradients would leave 0.05 / 65536"
    )
    assert 0.1 < record["grad_norm"] < 100


def test_a_skipped_step_moves_neither_weights_nor_schedule(make_config, make_pipeline):
    pipeline = make_pipeline(make_config(amp="fp16"))
    pipeline.precision.scaler.load_state_dict(
        {**pipeline.precision.scaler.state_dict(), "scale": 2.0**120}
    )
    before = {k: v.clone() for k, v in pipeline.model.state_dict().items()}
    record = train_step(pipeline)
    assert (
        not record["step_taken"]
        and record["skipped_steps"] == 1
        and pipeline.schedule.last_epoch == 0
    )
    assert all(torch.equal(v, before[k]) for k, v in pipeline.model.state_dict().items())
    assert pipeline.precision.scale() == 2.0**119
    pipeline.precision.scaler.load_state_dict(
        {**pipeline.precision.scaler.state_dict(), "scale": 1024.0}
    )
    assert train_step(pipeline)["step_taken"] and pipeline.schedule.last_epoch == 1


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_mixed_precision_stays_near_float32(make_config, make_pipeline, amp):
    config = make_config()
    config = replace(config, model=replace(config.model, dropout=0.0))
    plain, mixed = make_pipeline(config), make_pipeline(replace(config, amp=amp))
    for _ in range(3):
        a, b = train_step(plain)["loss"], train_step(mixed)["loss"]
        assert a == pytest.approx(b, rel=0.02) and a != b
    assert {p.dtype for p in mixed.model.parameters()} == {torch.float32}


def test_divergence_is_said_and_no_step_taken(make_config, make_pipeline):
    pipeline = make_pipeline(make_config())
    with torch.no_grad():
        pipeline.model.head.weight[5, 0] = math.nan
    before = pipeline.model.embedding.weight.clone()
    with pytest.raises(TrainingDiverged, match="step 0: loss nan"):
        train_step(pipeline)
    assert torch.equal(before, pipeline.model.embedding.weight)


def test_layer_norms_add_up_to_the_global_norm(make_config, make_pipeline):
    pipeline = make_pipeline(make_config())
    record = train_step(pipeline)
    layers = record["layer_grad_norms"]
    assert math.hypot(*layers.values()) == pytest.approx(record["grad_norm"], rel=1e-5)
    assert {"embedding", "encoder.0", "encoder.1", "decoder.0", "decoder.1", "head"} <= set(layers)
    assert layer_of("module.decoder.1.feed.widen.weight") == "decoder.1"
    assert set(gradient_norms(pipeline.model.named_parameters())) == set(layers)


def test_the_log_record_says_everything(make_config, make_pipeline, tmp_path):
    record = train_step(make_pipeline(make_config()))
    needed = {
        "step",
        "loss",
        "lr",
        "grad_norm",
        "layer_grad_norms",
        "scale",
        "skipped_steps",
        "tokens_per_s",
    }
    assert needed | {"data_wait_ms", "memory_mib"} <= set(record)
    log = MetricsLog(tmp_path / "log.jsonl", None)
    log.write({"step": 1, "loss": math.nan})
    log.write({"step": 2, "loss": 1.0})
    log.close()
    assert (
        tmp_path / "log.jsonl"
    ).read_text() == '{"step": 1, "loss": "nan"}\n{"step": 2, "loss": 1.0}\n'
    MetricsLog(tmp_path / "log.jsonl", 1).close()
    assert (tmp_path / "log.jsonl").read_text() == '{"step": 1, "loss": "nan"}\n'


def test_metrics_do_not_depend_on_batch_size_or_padding(make_config, make_pipeline):
    pipeline = make_pipeline(make_config(dtype="float64"))
    results = [
        evaluate(pipeline.model, pipeline.data.val, pipeline.precision, Ranks(), batch_size=size)
        for size in (1, 7, 24)
    ]
    for other in results[1:]:
        assert other.to_json() == pytest.approx(results[0].to_json(), abs=1e-12)


def test_evaluation_leaves_mode_and_generators_alone(make_config, make_pipeline):
    pipeline = make_pipeline(make_config())
    pipeline.model.train()
    state = torch.get_rng_state()
    evaluate(pipeline.model, pipeline.data.val, Precision("off", CPU), Ranks())
    assert pipeline.model.training and torch.equal(state, torch.get_rng_state())
    with eval_mode(pipeline.model):
        assert not pipeline.model.training and not torch.is_grad_enabled()


def test_a_language_model_is_continued_from_a_prefix(make_config, make_pipeline):
    pipeline = make_pipeline(make_config(task="lm"))
    metrics = evaluate(pipeline.model, pipeline.data.val, pipeline.precision, Ranks())
    assert 0 <= metrics.free_token_accuracy < 1 and metrics.num_sequences == 24


def test_matches_counts_up_to_and_including_eos():
    labels = torch.tensor(
        [[5, 6, 2, IGNORE_INDEX], [5, 2, IGNORE_INDEX, IGNORE_INDEX], [5, 6, 7, 2]]
    )
    new = torch.tensor([[5, 6, 2], [5, 9, 2], [5, 6, 7]])
    assert matches(new, labels) == [3 + 1 + 3, 9.0, 1.0]


def test_early_stopping_waits_and_wants_a_real_gain():
    stopping = EarlyStopping(patience=2, min_delta=0.1)
    assert stopping.update(0.5, 10)
    assert stopping.update(0.55, 20) and not stopping.should_stop, "best, and yet no real gain"
    assert not stopping.update(float("nan"), 30) and stopping.should_stop
    assert (stopping.best, stopping.best_step) == (0.55, 20)
    other = EarlyStopping(patience=2, min_delta=0.1)
    other.restore(stopping.state())
    assert other == stopping
    assert stopping.update(0.7, 40) and not stopping.should_stop
    assert not EarlyStopping().should_stop


@pytest.mark.parametrize("amp", ["off", "fp16"])
@pytest.mark.parametrize("arch", ARCHS)
def test_a_batch_can_be_memorised(make_config, make_pipeline, arch, amp):
    config = without_noise(
        make_config(arch=arch, amp=amp, overfit_batch=1, batch_size=8, steps=300)
    )
    pipeline = make_pipeline(replace(config, optim=replace(config.optim, lr=0.02)))
    losses = []
    while pipeline.step < 300 and (not losses or losses[-1] >= 0.01):
        losses.append(train_step(pipeline)["loss"])
    assert losses[-1] < 0.01 and losses[0] > 2
