"""Do the callbacks cost more than the command line? The same training under HF Trainer, Lightning and
Accelerate: bare, under `sawbones run`, with the callback, and bare again, which is the null.

    python benchmarks/callback_cost.py --rounds 5 --out benchmarks/results/FILE.md

CPU seconds of the whole process as the system counts them: what Sawbones imports and what it writes
at the end is in them, whichever of the ways brings it in. The order changes from round to round.
The load is written beside them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from provenance import provenance

KINDS = ("bare", "run", "callback", "bare again")
SHARED = """
import sys, torch, warnings
from torch import nn
warnings.filterwarnings("ignore")
torch.manual_seed(0)
steps, mode = int(sys.argv[1]), sys.argv[2]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
        self.embed, self.body = nn.Embedding(100, 128), nn.TransformerEncoder(layer, 3)
        self.head = nn.Linear(128, 100)

    def forward(self, ids, labels=None):
        logits = self.head(self.body(self.embed(ids)))
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits

rows = torch.randint(0, 100, (8 * steps, 48))
"""
PROGRAMS = {
    "transformers": """
from transformers import Trainer, TrainingArguments

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return len(rows)
    def __getitem__(self, i):
        return {"ids": rows[i], "labels": rows[i]}

callbacks = []
if mode == "callback":
    from sawbones.integrations.transformers import SawbonesCallback
    callbacks = [SawbonesCallback(summary=False)]
settings = TrainingArguments("out", per_device_train_batch_size=8, num_train_epochs=1, report_to=[],
                             logging_steps=50, save_strategy="no", disable_tqdm=True, use_cpu=True)
trainer = Trainer(Net(), settings, train_dataset=Rows(), callbacks=callbacks)
trainer.train()
""",
    "lightning": """
import logging
import lightning
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def training_step(self, batch, number):
        return self.net(batch[0], batch[0])[0]
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-3)

callbacks = []
if mode == "callback":
    from sawbones.integrations.lightning import SawbonesCallback
    callbacks = [SawbonesCallback(summary=False)]
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows), 8, shuffle=True)
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, callbacks=callbacks,
                            enable_checkpointing=False, enable_progress_bar=False,
                            enable_model_summary=False)
trainer.fit(Module(), loader)
""",
    "accelerate": """
from accelerate import Accelerator

trackers = []
if mode == "callback":
    from sawbones.integrations.accelerate import SawbonesTracker
    trackers = [SawbonesTracker(summary=False)]
accelerator = Accelerator(cpu=True, log_with=trackers or None)
net = Net()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows), 8, shuffle=True)
net, optimizer, loader = accelerator.prepare(net, torch.optim.AdamW(net.parameters(), 1e-3), loader)
accelerator.init_trackers("cost")
for (ids,) in loader:
    optimizer.zero_grad()
    accelerator.backward(net(ids, ids)[0])
    optimizer.step()
accelerator.end_training()
""",
}


def cpu_seconds(trainer: str, kind: str, steps: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(SHARED + PROGRAMS[trainer], encoding="utf-8")
        watched = ["-m", "sawbones", "run", "--quiet", "--out", f"{folder}/run"]
        start = [sys.executable, *(watched if kind == "run" else [])]
        with Path(folder, "said").open("w+") as said:
            started = subprocess.Popen(
                [*start, "train.py", str(steps), kind],
                cwd=folder,
                stdout=said,
                stderr=said,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
            _, status, used = os.wait4(started.pid, 0)
            started.returncode = os.waitstatus_to_exitcode(status)
            if status:
                said.seek(0)
                raise SystemExit(f"{trainer}, {kind}: {said.read()[-2000:]}")
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    load = os.getloadavg()[0]
    rows = []
    for trainer in PROGRAMS:
        found: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for number in range(given.rounds):
            turn = number % len(KINDS)
            for kind in (*KINDS[turn:], *KINDS[:turn]):
                found[kind].append(cpu_seconds(trainer, kind, given.steps))
        cells = [trainer]
        for kind in KINDS:
            ratios = [a / b for a, b in zip(found[kind], found["bare"], strict=True)]
            cells.append(
                f"{statistics.median(found[kind]):.2f} s, {statistics.median(ratios):.3f} "
                f"({min(ratios):.3f}-{max(ratios):.3f})"
            )
        rows.append(f"| {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    if given.out is not None:
        command = f"benchmarks/callback_cost.py --rounds {given.rounds} --steps {given.steps}"
        at = f"load {load:.1f} at the start, {os.getloadavg()[0]:.1f} at the end"
        lines = ["# What the callbacks cost beside the command line", "", f"`python {command}`", ""]
        lines += [
            f"{provenance()}; {at}. CPU seconds (median), ratio to bare (median and range).",
            "",
        ]
        lines += [f"| trainer | {' | '.join(KINDS)} |", f"|{'---|' * (len(KINDS) + 1)}", *rows, ""]
        given.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
