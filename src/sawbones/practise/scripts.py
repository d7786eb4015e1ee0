"""Healthy training scripts by seed: a task, a way of writing it, and what the loop has.

Two seeds hardly ever give one script: names, order, sizes, optimizer, schedule, clipping,
accumulation, snapshots and the form of the program are all drawn.
"""

from __future__ import annotations

import random
import re
import textwrap
from dataclasses import dataclass

from sawbones.practise.tasks import TASKS, Task

# One word each for what the text calls $model, $optimizer, ...
_NAMES: tuple[dict[str, str], ...] = (
    {},
    {
        "model": "net",
        "optimizer": "opt",
        "criterion": "loss_fn",
        "x": "inputs",
        "y": "targets",
        "out": "logits",
        "loss": "loss",
        "features": "table",
        "labels": "answers",
        "Net": "Network",
        "train_loader": "train_batches",
        "val_loader": "val_batches",
        "scheduler": "schedule",
        "evaluate": "validate",
        "rng": "gen",
        "order": "perm",
    },
    {
        "model": "clf",
        "optimizer": "optim",
        "criterion": "objective",
        "x": "xb",
        "y": "yb",
        "out": "pred",
        "loss": "err",
        "features": "X",
        "labels": "Y",
        "Net": "Predictor",
        "train_loader": "loader",
        "val_loader": "held_out",
        "scheduler": "sched",
        "evaluate": "test",
        "rng": "g",
        "order": "ids",
    },
    {
        "model": "estimator",
        "optimizer": "updater",
        "criterion": "cost_function",
        "x": "batch",
        "y": "wanted",
        "out": "answer",
        "loss": "cost",
        "features": "measurements",
        "labels": "classes",
        "Net": "Estimator",
        "train_loader": "training",
        "val_loader": "validation",
        "scheduler": "rates",
        "evaluate": "assess",
        "rng": "source",
        "order": "shuffled",
    },
)
_OPTIMIZERS = (
    "torch.optim.AdamW($model.parameters(), lr=3e-3, weight_decay=0.02)",
    "torch.optim.Adam($model.parameters(), lr=3e-3)",
    "torch.optim.SGD($model.parameters(), lr=0.05, momentum=0.9)",
)
_LOGS = (
    'print(f"epoch {epoch}: loss {total / count:.4f}, val loss {val_loss:.4f}, @score {val_score:.3f}")',
    'print("epoch", epoch, "train", round(total / count, 4), "val", round(val_loss, 4), "@score", round(val_score, 3))',
    'print(f"[{epoch + 1:02d}] {total / count:.4f} | {val_loss:.4f} | @score={val_score:.3f}")',
)


@dataclass(frozen=True)
class Script:
    task: str
    text: str
    score: str


def healthy(rng: random.Random, task: Task | None = None) -> Script:
    task = task or rng.choice(TASKS)
    names = rng.choice(_NAMES)
    # Plain SGD at one rate does not train every task of ours within a few epochs.
    slow = task.name in ("chars", "reviews", "tags", "churn")
    optimizer = rng.choice(_OPTIMIZERS[:2] if slow else _OPTIMIZERS)
    if task.normalises:  # a decay that somebody chose, on the gains too, is a fault of its own
        optimizer = optimizer.replace(", weight_decay=0.02", "")
    numbers: dict[str, object] = {n: rng.choice(v) for n, v in task.numbers.items()}
    numbers |= {"data_seed": rng.randrange(1000), "seed": rng.randrange(100)}
    numbers |= {"epochs": task.epochs, "batch": rng.choice((16, 32)), "score": task.score}
    text = _written(task, rng, optimizer)
    text = re.sub(r"@(\w+)", lambda m: str(numbers.get(m[1], m[0])), text)
    text = re.sub(r"\$(\w+)", lambda m: names.get(m[1], str(m[1])), text)
    return Script(task.name, text, task.score)


def _written(task: Task, rng: random.Random, optimizer: str) -> str:
    snapshot, scheduled = rng.random() < 0.5, rng.random() < 0.6
    head = _imports(task, snapshot)
    collate = ", collate_fn=collate" if task.collate else ""
    setting = f"torch.manual_seed(@seed)\n{task.data}"
    setting += (
        f"$train_loader = DataLoader($train_set, batch_size=@batch, shuffle=True{collate})\n"
        f"$val_loader = DataLoader($val_set, batch_size=64{collate})\n"
    )
    criterion = f"$criterion = {task.criterion}\n"
    building = f"$model = $Net({task.build})\n$optimizer = {optimizer}\n"
    if scheduled:
        schedule = rng.choice(
            (
                "CosineAnnealingLR($optimizer, T_max=@epochs)",
                "StepLR($optimizer, step_size=2, gamma=0.6)",
            )
        )
        building += f"$scheduler = torch.optim.lr_scheduler.{schedule}\n"
    evaluate = _evaluation(task)
    loop = _loop(task, rng, snapshot, scheduled)
    constants = "EPOCHS = @epochs\n"
    classes = "\n\n".join(filter(None, [task.collate, task.network]))
    if rng.random() < 0.5:  # one program from top to bottom
        body = (
            f"{constants}\n\n{classes}\n\n{setting}{criterion}\n\n{evaluate}\n\n{building}\n{loop}"
        )
        return f"{head}\n\n{body}"
    pad = "PAD = 0\n" if "PAD" in task.data else ""
    inner = (setting + criterion + building + "\n" + loop).replace("PAD = 0\n", "")
    evaluate = evaluate.replace("($model, $loader)", "($model, $loader, $criterion)")
    inner = inner.replace(
        "$evaluate($model, $val_loader)", "$evaluate($model, $val_loader, $criterion)"
    )
    return (
        f"{head}\n\n{constants}{pad}\n\n{classes}\n\n{evaluate}\n\ndef main():\n"
        f'{textwrap.indent(inner, "    ")}\n\nif __name__ == "__main__":\n    main()\n'
    )


def _imports(task: Task, snapshot: bool) -> str:
    plain = ["import json", *task.imports, *(["import copy"] if snapshot else [])]
    batches = "DataLoader, TensorDataset" if "TensorDataset" in task.data else "DataLoader"
    return (
        f'"""{task.about}"""\n\n'
        + "\n".join(sorted(plain))
        + f"\n\nimport torch\nfrom torch import nn\nfrom torch.utils.data import {batches}\n"
    )


def _evaluation(task: Task) -> str:
    return f"""\
@torch.no_grad()
def $evaluate($model, $loader):
    $model.eval()
    total, hits, count, asked = 0.0, 0.0, 0, 0
    for $x, $y in $loader:
        $out = {task.call}
        total += {task.loss_call}.item() * len($y)
        right = {task.hits}
        hits += right.float().sum().item()
        count += len($y)
        asked += right.numel()
    return total / count, hits / asked
"""


def _loop(task: Task, rng: random.Random, snapshot: bool, scheduled: bool) -> str:
    clipping = rng.random() < 0.5
    accumulating = rng.random() < 0.25
    clip = "torch.nn.utils.clip_grad_norm_($model.parameters(), 1.0)\n" if clipping else ""
    if accumulating:
        update = textwrap.indent(f"{clip}$optimizer.step()\n$optimizer.zero_grad()\n", "    ")
        step = (
            f"$out = {task.call}\n$loss = {task.loss_call}\n($loss / 2).backward()\n"
            f"if ($i + 1) % 2 == 0 or $i + 1 == len($train_loader):\n{update}"
        )
        header = "for $i, ($x, $y) in enumerate($train_loader):"
    else:
        cleared = "$optimizer.zero_grad()\n"
        first = rng.random() < 0.5
        step = (
            (cleared if first else "")
            + f"$out = {task.call}\n$loss = {task.loss_call}\n"
            + ("" if first else cleared)
            + f"$loss.backward()\n{clip}$optimizer.step()\n"
        )
        header = "for $x, $y in $train_loader:"
    step += "total += $loss.item() * len($y)\ncount += len($y)\n"
    epoch = (
        "$model.train()\ntotal, count = 0.0, 0\n" + header + "\n" + textwrap.indent(step, "    ")
    )
    if scheduled:
        epoch += "$scheduler.step()\n"
    epoch += "val_loss, val_score = $evaluate($model, $val_loader)\n"
    if snapshot:
        epoch += "if val_loss < best:\n    best, best_state = val_loss, copy.deepcopy($model.state_dict())\n"
    epoch += rng.choice(_LOGS) + "\n"
    epoch += 'history.append({"epoch": epoch, "loss": total / count, "val_loss": val_loss, "val_score": val_score})\n'
    before = "history = []\n" + (
        'best, best_state = float("inf"), copy.deepcopy($model.state_dict())\n' if snapshot else ""
    )
    after = ""
    if snapshot:
        after = (
            "$model.load_state_dict(best_state)\n"
            "val_loss, val_score = $evaluate($model, $val_loader)\n"
            'print(f"best: val loss {val_loss:.4f}, @score {val_score:.3f}")\n'
        )
    after += (
        'with open("metrics.json", "w") as file:\n    json.dump(history, file)\n'
        'torch.save($model.state_dict(), "model.pt")\n'
    )
    return f"{before}for epoch in range(EPOCHS):\n{textwrap.indent(epoch, '    ')}{after}"
