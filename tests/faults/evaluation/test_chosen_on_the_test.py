"""The best of many scores is the result only where other rows have chosen it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sawbones.diagnosis import diagnose_script
from sawbones.schema import Finding
from sawbones.stats.choosing import chosen_by_halves

GRAPH = """
import copy
import torch
from torch import nn

torch.manual_seed(0)
N = 400
people, friends = torch.randn(N, 8), (torch.rand(N, N) < 0.02).float()
friends = (friends + friends.T + torch.eye(N)).clamp(max=1)
votes = (people[:, 0] + torch.randn(N) > 0).long()
order = torch.randperm(N)
part = torch.zeros(3, N, dtype=torch.bool)
part[0, order[:120]] = True
part[1, order[120:240]] = True
part[2, order[240:]] = True
asked, these, those = part

class Neighbours(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 16), nn.Linear(16, 2)

    def forward(self, x):
        share = friends / friends.sum(1, keepdim=True)
        return self.outer(torch.relu(self.inner(x)) + share @ torch.relu(self.inner(x)))

net = Neighbours()
opt = torch.optim.Adam(net.parameters(), 1e-2)

def score(mask):
    net.eval()
    with torch.no_grad():
        guess = net(people).argmax(1)
        return (guess[mask] == votes[mask]).float().mean().item()

best, kept = 0.0, None
for epoch in range(40):
    net.train()
    opt.zero_grad()
    nn.functional.cross_entropy(net(people)[asked], votes[asked]).backward()
    opt.step()
    a, b, c = {scored}
    print(f"{epoch} {a:.3f} {b:.3f} {c:.3f}")
    if {chosen} > best:
        best, kept = {chosen}, copy.deepcopy(net.state_dict())
{end}
"""

TABLE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
inputs = torch.randn(900, 12)
labels = (inputs[:, :3].sum(1) + {noise} * torch.randn(900) > 0).long()
learn, these, those = (
    TensorDataset(inputs[a:b], labels[a:b]) for a, b in ((0, 300), (300, 600), (600, 900))
)
net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))
opt = torch.optim.AdamW(net.parameters(), 5e-3)
look = nn.CrossEntropyLoss()

def scored(rows):
    right = total = 0.0
    net.eval()
    with torch.no_grad():
        for x, y in DataLoader(rows, batch_size=64):
            answers = net(x)
            total += look(answers, y).item() * len(y)
            right += (answers.argmax(1) == y).sum().item()
    return right / len(rows), total / len(rows)

best, kept = -9.0, None
for epoch in range(12):
    net.train()
    for x, y in DataLoader(learn, batch_size=50, shuffle=True):
        opt.zero_grad()
        look(net(x), y).backward()
        opt.step()
    {both}
    print(f"{epoch} {b:.4f} {c:.4f} {lost:.4f}")
    if {chosen} > best:
        best = {chosen}
        torch.save(net.state_dict(), "best.pt")
{end}
"""
SEE_BOTH = "(b, lost), (c, _) = scored(these), scored(those)"
SEE_ONE = "(b, lost), c = scored(these), 0.0"
PUT_BACK = 'net.load_state_dict(torch.load("best.pt"))\n'


def _found(script: str, folder: Path, verdict: str = "healthy", **parts: str) -> list[Finding]:
    for name, text in parts.items():
        script = script.replace("{" + name + "}", text)
    (folder / "train.py").write_text(script, encoding="utf-8")
    told = diagnose_script(
        "train.py",
        working_folder=folder,
        seconds=100,
        only="evaluation.wrong-split",
        experiments=False,
    )
    assert told.report.verdict == verdict
    return list(told.report.findings)


ALL = "score(asked), score(these), score(those)"
BACK = "net.load_state_dict(kept)\n"


@pytest.mark.parametrize(
    ("chosen", "scored", "end", "found"),
    [
        ("c", ALL, BACK + "print(f'{score(those):.4f}')", True),
        ("c", ALL, "print(f'accuracy {best:.4f}')", True),
        ("c", ALL, "print(f'accuracy {c:.4f}')", False),
        ("b", ALL, BACK + "print(f'{score(those):.4f}')", False),
        ("b", ALL, BACK + "print(f'{best:.4f} {score(those):.4f}')", False),
        ("b", "score(asked), score(these), 0.0", BACK + "print(f'{score(those):.4f}')", False),
        ("b", "score(asked), score(these), 0.0", BACK + "print(f'{score(these):.4f}')", False),
    ],
    ids=["kept", "printed", "last", "other part", "both shown", "scored once", "one part alone"],
)
def test_a_part_of_a_graph_that_chooses_the_weights_is_not_what_they_are_scored_on(
    chosen: str, scored: str, end: str, found: bool, tmp_path: Path
) -> None:
    findings = _found(GRAPH, tmp_path, chosen=chosen, scored=scored, end=end)
    assert [f.status for f in findings] == ["suspected"] * found
    if found:
        lines = (tmp_path / "train.py").read_text(encoding="utf-8").splitlines()
        assert {"best, kept", "a, b, c"} & {
            lines[s.line - 1].split(" =")[0].strip() for s in findings[0].where[:1]
        }
        assert "160 held-out rows were scored at 40 steps" in findings[0].evidence[0].text
        assert "120 other held-out rows" in findings[0].evidence[-1].text


@pytest.mark.parametrize(
    ("chosen", "both", "end", "found"),
    [
        ("c", SEE_BOTH, PUT_BACK + "print(f'{scored(those)[0]:.4f}')", True),
        ("c", SEE_BOTH, "print(f'{100 * best:.2f} %')", True),
        ("b", SEE_BOTH, PUT_BACK + "print(f'{scored(those)[0]:.4f}')", False),
        ("-lost", SEE_BOTH, PUT_BACK + "print(f'{scored(those)[0]:.4f}')", False),
        ("b", SEE_ONE, PUT_BACK + "print(f'{scored(those)[0]:.4f}')", False),
        ("b", SEE_ONE, PUT_BACK + "print(f'{scored(these)[0]:.4f}')", False),
        ("b", SEE_ONE, "print(f'best {best:.4f}')", False),
    ],
    ids=["kept", "printed", "other rows", "their loss", "scored once", "one set", "one printed"],
)
def test_rows_that_choose_the_epoch_are_not_what_it_is_scored_on(
    chosen: str, both: str, end: str, found: bool, tmp_path: Path
) -> None:
    findings = _found(TABLE, tmp_path, chosen=chosen, both=both, end=end, noise="1.5")
    assert [f.status for f in findings] == ["suspected"] * found
    if found:
        assert "300 held-out rows were scored at 12 steps" in findings[0].evidence[0].text


def test_the_luckiest_of_many_guesses_is_told_by_the_other_half_of_the_rows(tmp_path: Path) -> None:
    lucky = "print(f'best {best:.4f}')"
    script = (
        TABLE.replace("inputs[:, :3].sum(1)", "0 * inputs[:, 0]")
        .replace("range(12)", "range(80)")
        .replace("(600, 900)", "(600, 660)")
        .replace("    net.train()\n", "    net.train(), net[0].reset_parameters()\n")
    )
    one = "(c, _), (b, lost) = scored(those), (0.0, 0.0)"
    ill = "unexplained"  # there is nothing to learn
    findings = _found(script, tmp_path, ill, chosen="c", both=one, end=lucky, noise="1.0")
    assert [f.status for f in findings] == ["suspected"]
    told = " ".join(e.text for e in findings[0].evidence)
    assert "60 held-out rows" in told and "one half of these rows chooses" in told


def test_a_choice_by_the_scored_rows_is_worth_what_the_other_half_of_them_says() -> None:
    rng = np.random.default_rng(0)
    guessed = [rng.random((200, 100)) < 0.5 for _ in range(20)]
    assert np.mean([one.mean(1).max() for one in guessed]) > 0.62
    assert abs(np.mean([chosen_by_halves(one) for one in guessed]) - 0.5) < 0.02
    learned = np.repeat(rng.random((1, 100)) < 0.8, 20, axis=0)
    assert chosen_by_halves(learned) == pytest.approx(learned.mean(), abs=1e-6)
    rising = rng.random((30, 400)) < np.linspace(0.3, 0.9, 30)[:, None]
    assert abs(chosen_by_halves(rising) - 0.9) < 0.04
