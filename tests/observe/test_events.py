"""What happened, in which order and where: every kind of event, in a plain loop and under three
frameworks.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from processes import Bench, Outcome
from torch import nn
from torch.nn import functional as F

import sawbones
from sawbones.observe.options import Options
from sawbones.schema import Event

SHALLOW = Options(deep_steps=(), deep_every=0)

PLAIN = """
    import random

    import numpy as np
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    def loss_of(model, x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(x)
        return nn.functional.cross_entropy(logits.float(), y, label_smoothing=0.1, ignore_index=7)  # LOSS


    def main():
        torch.manual_seed(3)  # SEED
        random.seed(4)
        np.random.seed(5)
        x, y = torch.randn(48, 6), torch.randint(0, 3, (48,))
        loader = DataLoader(TensorDataset(x, y), batch_size=8)
        model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        model.train()
        for i, (a, b) in enumerate(loader):  # BATCH
            loss = loss_of(model, a, b) / 2
            scaler.scale(loss).backward()  # BACKWARD
            if i % 2:
                scaler.unscale_(optimizer)  # UNSCALE
                nn.utils.clip_grad_norm_(model.parameters(), 0.25)  # CLIP
                scaler.step(optimizer)  # STEP
                scaler.update()  # UPDATE
                optimizer.zero_grad()  # ZERO
                scheduler.step()  # SCHEDULE
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}, "last.pt")  # SAVE
        torch.load("last.pt", weights_only=False)  # LOAD
        model.eval()
        with torch.no_grad():
            loss_of(model, x, y)
        with torch.inference_mode():
            model(x)


    main()
"""


@pytest.fixture(scope="module")
def plain(benches: Callable[[str], Bench]) -> Outcome:
    outcome = benches("plain").watched(PLAIN)
    assert outcome.status == 0, outcome.stderr
    return outcome


def only(outcome: Outcome, kind: str) -> tuple[Event, ...]:
    return outcome.events(kind)


@pytest.mark.parametrize(
    ("kind", "mark", "count"),
    [
        ("seed", "SEED", 1),
        ("batch", "BATCH", 6),
        ("loss", "LOSS", 7),
        ("backward", "BACKWARD", 6),
        ("scale", "BACKWARD", 6),
        ("unscale", "UNSCALE", 3),
        ("clip", "CLIP", 3),
        ("step", "STEP", 3),
        ("scaler_step", "STEP", 3),
        ("scaler_update", "UPDATE", 3),
        ("zero_grad", "ZERO", 3),
        ("schedule", "SCHEDULE", 3),
        ("save", "SAVE", 1),
        ("load", "LOAD", 1),
    ],
)
def test_each_kind_is_recorded_with_the_users_line(
    plain: Outcome, kind: str, mark: str, count: int
) -> None:
    found = [
        e for e in only(plain, kind) if e.site is not None and e.site.code.endswith(f"# {mark}")
    ]
    assert len(found) == count
    assert {e.site.file for e in found if e.site} == {"train.py"} and all(
        e.rank == 0 and e.time > 0 for e in found
    )
    assert {e.site.function for e in found if e.site} == {"loss_of" if kind == "loss" else "main"}


def test_the_order_of_one_step_is_the_order_of_the_loop(plain: Outcome) -> None:
    kinds = [e.kind for e in plain.run.events if e.step == 1 and e.kind != "mode"]
    micro = ["batch", "forward", "loss", "scale", "backward"]
    expected = [*micro, *micro, "unscale", "clip", "step", "scaler_step"]
    # The batch is fetched, then the scheduler and the zeroing of the step before are already behind
    # it.
    assert [k for k in kinds if k in expected] == expected


def test_steps_and_microsteps_are_counted_by_the_optimizer(plain: Outcome) -> None:
    assert [(e.step, e.microstep) for e in only(plain, "backward")] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
        (2, 0),
        (2, 1),
    ]
    assert plain.run.steps["microsteps"].tolist() == [2, 2, 2]


def test_a_loss_is_recorded_with_its_settings_shapes_and_value(plain: Outcome) -> None:
    first = only(plain, "loss")[0]
    expected = {
        "fn": "cross_entropy",
        "reduction": "mean",
        "ignore_index": 7,
        "smoothing": 0.1,
        "weight": False,
        "grad": True,
    }
    assert {k: first.data[k] for k in expected} == expected
    assert (first.data["input_shape"], first.data["target_shape"]) == ([8, 3], [8])
    assert (first.data["input_dtype"], first.data["target_dtype"]) == ("float32", "int64")
    backward = only(plain, "backward")[0]
    assert backward.data["scaled"] and backward.data["value"] == pytest.approx(
        first.data["value"] / 2
    )


def test_scaler_clipping_and_schedule_carry_their_numbers(plain: Outcome) -> None:
    assert {e.data["scale"] for e in only(plain, "scale")} == {1024.0}
    assert [
        (e.data["scale_before"], e.data["scale_after"]) for e in only(plain, "scaler_update")
    ] == [(1024.0, 1024.0)] * 3
    assert all(not e.data["skipped"] for e in only(plain, "scaler_step"))
    clips = only(plain, "clip")
    assert all(
        e.data["max_norm"] == 0.25 and e.data["norm"] > 0 and e.data["num_tensors"] == 4
        for e in clips
    )
    initial, *steps = only(plain, "schedule")
    assert initial.data["initial"] and [
        (e.data["lr_before"], e.data["lr_after"]) for e in steps
    ] == [
        ([0.1], [0.05]),
        ([0.05], [0.025]),
        ([0.025], [0.0125]),
    ]
    steps_table = plain.run.steps
    assert (
        steps_table["lr"].tolist() == [0.1, 0.05, 0.025]
        and steps_table["scale"].tolist() == [1024.0] * 3
    )
    np.testing.assert_allclose(
        steps_table["grad_norm"], 0.25, rtol=1e-3
    )  # of the step that was taken: clipped, accumulated


def test_phases_modes_autocast_and_inference_are_told_apart(plain: Outcome) -> None:
    forwards = only(plain, "forward")
    assert [e.phase for e in forwards] == ["train"] * 6 + ["eval"] * 2
    assert [e.data["autocast"] for e in forwards] == ["bfloat16"] * 7 + [None]
    assert [e.data["inference"] for e in forwards] == [False] * 7 + [True]
    assert [e.data["training"] for e in only(plain, "mode")] == [True, False]
    assert [e.data["library"] for e in only(plain, "seed")] == ["torch", "random", "numpy"]


def test_checkpoints_are_told_by_what_they_hold(plain: Outcome) -> None:
    (saved,), (loaded,) = only(plain, "save"), only(plain, "load")
    assert saved.data["kinds"] == loaded.data["kinds"] == ["model", "optimizer", "step"]
    assert saved.data["path"] == "last.pt" and saved.data["keys"] == ["model", "optimizer", "step"]


def test_batches_have_waits_shapes_and_fingerprints(plain: Outcome) -> None:
    run = plain.run
    trained = [b for b in run.batches if b.phase == "train"]
    assert [b.source for b in trained] == ["loader:0"] * 6 and all(b.wait_ms > 0 for b in trained)
    assert [tuple(t["shape"]) for t in trained[0].tensors] == [(8, 6), (8,)]
    prints = [p for b in trained for p in b.fingerprints]
    assert len(prints) == 48 and len(set(prints)) == 48
    assert (
        np.all(run.steps["data_wait_ms"] > 0)
        and np.all(run.steps["memory_mb"] > 0)
        and np.all(run.steps["step_ms"] > 0)
    )


# in this process, under sawbones.watch: shorter


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def test_sgd_written_by_hand_is_noticed(tmp_path) -> None:
    model = net()
    with sawbones.watch(out=tmp_path / "run", options=SHALLOW) as watching:
        for i in range(6):
            model.zero_grad()
            model(torch.ones(3, 4)).square().mean().backward()
            with torch.no_grad():
                for p in model.parameters():
                    if i % 2:
                        p.sub_(0.1 * p.grad)
                    else:
                        p.data.add_(p.grad, alpha=-0.1)
    run = watching.close()
    assert (
        len(run.of_kind("manual_step")) == 5 and run.num_steps == 6
    )  # the last has no later pass to reveal it before the end
    assert np.all(run.steps["grad_norm"] > 0) and np.all(run.steps["update_norm"][:3] > 0)
    assert not run.of_kind("step")


def test_parameters_in_a_plain_list_are_noticed_too(tmp_path) -> None:
    torch.manual_seed(0)
    w, b = torch.randn(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    with sawbones.watch(out=tmp_path / "run", options=SHALLOW) as watching:
        for _ in range(4):
            w.grad = b.grad = None
            F.mse_loss(torch.ones(3, 4) @ w + b, torch.ones(3, 1)).backward()
            with torch.no_grad():
                w -= 0.03 * w.grad
                b -= 0.03 * b.grad
    run = watching.close()
    assert run.num_steps == 4 and len(run.of_kind("manual_step")) == 3
    assert run.statistics["grad_l2"].shape[1] == 2 and np.all(run.statistics["grad_l2"] >= 0)


def test_several_optimizers_are_told_apart(tmp_path) -> None:
    first, second = net(), net()
    one, two = (
        torch.optim.SGD(first.parameters(), lr=0.1),
        torch.optim.Adam(second.parameters(), lr=0.01),
    )
    with sawbones.watch(out=tmp_path / "run", options=SHALLOW) as watching:
        for _ in range(3):
            for model, optimizer in ((first, one), (second, two)):
                optimizer.zero_grad()
                model(torch.ones(3, 4)).square().mean().backward()
                optimizer.step()
    run = watching.close()
    assert run.steps["optimizer"].tolist() == [0, 1] * 3
    np.testing.assert_allclose(run.steps["lr"], [0.1, 0.01] * 3)
    assert [o.cls for o in run.optimizers] == ["SGD", "Adam"]
    held = {t.optimizer for t in run.tensors if t.in_model}
    assert held == {0, 1} and len(run.tensors) == 8


def test_a_step_that_the_scaler_skips_is_recorded_as_such(tmp_path) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1)
    with sawbones.watch(out=tmp_path / "run", options=SHALLOW) as watching:
        for i in range(4):
            optimizer.zero_grad()
            scale = math.inf if i == 1 else 1.0
            scaler.scale(model(torch.ones(3, 4)).square().mean() * scale).backward()
            scaler.step(optimizer)
            scaler.update()
    run = watching.close()
    assert run.steps["skipped"].tolist() == [0, 1, 0, 0]
    assert run.steps["scale"].tolist() == [8.0, 16.0, 8.0, 16.0]
    assert [e.data["skipped"] for e in run.of_kind("scaler_step")] == [False, True, False, False]
    assert not np.isfinite(run.steps["loss"][1]) and np.isfinite(run.steps["loss"][[0, 2, 3]]).all()


def test_the_loss_of_a_closure_and_of_accumulation_is_kept(tmp_path) -> None:
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.ones(3, 4)).square().mean()
        loss.backward()
        return loss

    with sawbones.watch(out=tmp_path / "run", options=SHALLOW) as watching:
        for _ in range(2):
            optimizer.step(closure)
    run = watching.close()
    assert run.num_steps == 2 and [e.data["closure"] for e in run.of_kind("step")] == [True, True]
    assert len(run.of_kind("backward")) >= 4 and np.isfinite(run.steps["grad_norm"]).all()


FRAMEWORKS = {
    "hf trainer": """
        import torch
        from torch import nn
        from transformers import Trainer, TrainingArguments

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 2)
            def forward(self, x, labels):
                logits = self.layer(x)
                return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

        data = [{"x": torch.randn(4), "labels": torch.tensor(i % 2)} for i in range(32)]
        settings = TrainingArguments("out", max_steps=4, per_device_train_batch_size=4, gradient_accumulation_steps=2,
                                     report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True, max_grad_norm=0.5)
        Trainer(Net(), settings, train_dataset=data).train()  # LOOP
    """,
    "accelerate": """
        import torch
        from accelerate import Accelerator
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
        model = nn.Linear(4, 2)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 1 / (s + 1))
        loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.arange(32) % 2), batch_size=4)
        model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)  # LOOP
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()  # LOOP
                schedule.step()
                optimizer.zero_grad()
    """,
    "lightning": """
        import logging
        import warnings
        warnings.filterwarnings("ignore")
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        import lightning as L
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        class Net(L.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 2)
            def training_step(self, batch, index):
                return nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
            def configure_optimizers(self):
                return torch.optim.AdamW(self.parameters(), lr=1e-2)

        loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.arange(32) % 2), batch_size=4)
        trainer = L.Trainer(max_steps=4, accumulate_grad_batches=2, accelerator="cpu", logger=False, gradient_clip_val=0.5,
                            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
        trainer.fit(Net(), loader)  # LOOP
    """,
}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_frameworks_give_the_same_kinds_of_events(name: str, bench: Bench) -> None:
    pytest.importorskip("transformers" if name == "hf trainer" else name)
    outcome = bench.watched(FRAMEWORKS[name])
    assert outcome.status == 0, outcome.stderr[-2000:]
    run = outcome.run
    assert run.num_steps == 4 and run.steps["microsteps"].tolist() == [2] * 4
    for kind, count in (("batch", 8), ("forward", 8), ("loss", 8), ("backward", 8), ("step", 4)):
        found = [e for e in run.of_kind(kind) if e.phase == "train"]
        assert len(found) == count or (kind == "batch" and len(found) >= count), (kind, len(found))
        assert all(e.site is not None for e in found)
    assert len(run.of_kind("clip")) == 4 and len(run.of_kind("zero_grad")) >= 4
    assert all(
        e.site is not None and e.site.file == "train.py" and "# LOOP" in e.site.code
        for e in run.of_kind("step")
    )
    losses = [e.site for e in run.of_kind("loss")]
    assert all(site is not None and "cross_entropy" in site.code for site in losses)
    assert np.isfinite(run.steps["loss"]).all() and np.all(run.steps["grad_norm"] <= 0.5001)
    assert run.deep and not run.off
