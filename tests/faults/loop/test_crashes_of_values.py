"""Scripts that die of a value: a key that is not there, a loop without a pass, a text for a number,
a module that holds itself, lengths, ranges and forms that a call does not take.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import assert_named_by_one_finding, died, explanations, root_line

from sawbones.schema import Run

HEAD = """
import json
import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split

torch.manual_seed(0)
"""

KEY = """
names = ["D00", "D10", "d00"]
classes = {"D00": 0, "D10": 1}
labels = []
for name in names:
    labels.append(classes[name])  # ROOT
"""
POSITION = """
class Folder(Dataset):
    def __init__(self):
        self.images, self.labels = list(torch.rand(9, 4)), [0, 1, 0]
    def __len__(self):
        return len(self.images)
    def __getitem__(self, i):
        return self.images[i], self.labels[i]  # ROOT
for x, y in DataLoader(Folder(), batch_size=2):
    pass
"""
NO_BATCH = """
def epoch():
    loader = DataLoader(TensorDataset(torch.ones(6, 2)), batch_size=8, drop_last=True)  # ROOT
    for i, (x,) in enumerate(loader):
        pass
    return i + 1
epoch()
"""
BRANCH = """
def fit(evaluates):
    best = 1.0
    if evaluates:
        held_out = 0.5
    return min(best, held_out)  # ROOT
fit(False)
"""
NO_NUMBER = """
rows = []
for text in ["0.5", "1.5", "N/A"]:
    rows.append([float(text)])  # ROOT
"""
NO_JSON = """
rows = []
for line in ['{"x": 1}', "{'x': 2}"]:
    rows.append(json.loads(line))  # ROOT
"""
CIRCLE = """
class Head(nn.Module):
    def link(self, model):
        self.owner = model  # ROOT
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = Head()
        self.head.link(self)
model = Net()
model.eval()
"""
HEADS = """
layer = nn.MultiheadAttention(30, 8)  # ROOT
"""
TEXT_FOR_A_NUMBER = """
settings = {"hidden": "64"}
layer = nn.Linear(9, settings["hidden"])  # ROOT
"""
NESTED_FORWARD = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        def forward(self, x):  # ROOT
            return self.layer(x)
Net()(torch.ones(2, 4))
"""
TARGETS = """
scores = torch.rand(6, 3)
targets = torch.arange(18.0).view(6, 3)  # ROOT
nn.BCELoss()(scores, targets)
"""
ALL_MASKED = """
scores = torch.randn(5).masked_fill(torch.ones(5, dtype=torch.bool), float("-inf"))  # ROOT
torch.distributions.Categorical(torch.softmax(scores, -1))
"""
SPLIT = """
rows = TensorDataset(torch.ones(15, 2))
random_split(rows, [int(15 * 0.9), int(15 * 0.1)])  # ROOT
"""
NOT_SORTED = """
padded, lengths = torch.ones(3, 4, 2), torch.tensor([2, 4, 1])
pack_padded_sequence(padded, lengths, batch_first=True)  # ROOT
"""
NO_LEAF = """
noise = torch.randn(4, requires_grad=True) * 0.1  # ROOT
torch.optim.SGD([noise], lr=0.1)
"""
FLIPPED = """
image = np.ones((3, 4), dtype="float32")[:, ::-1]
torch.from_numpy(image)  # ROOT
"""
SEVERAL = """
loss = nn.MSELoss(reduction="none")(torch.ones(4), torch.zeros(4))
total = loss.item()  # ROOT
"""
NO_FOLDER = """
torch.save({}, "no/such/folder/model.pt")  # ROOT
"""
EINSUM = """
q, k = torch.ones(2, 3, 16), torch.ones(2, 5, 24)
torch.einsum("bqd,bkd->bqk", q, k)  # ROOT
"""
MASK = """
losses, mask = torch.ones(2, 11), torch.ones(2, 12, dtype=torch.bool)
losses[mask]  # ROOT
"""
PRECEDENCE = """
def forward(x, h, w):
    h2, w2 = x.size(2), x.size(3)
    if h != h2 | w != w2:  # ROOT
        x = nn.functional.interpolate(x, (h, w))
    return x.view(2, 3, h * w)
forward(torch.ones(2, 3, 6, 6), 5, 6)
"""
EMPTY_BATCH = """
def collate(batch):
    batch = [sample for sample in batch if sample is not None]  # ROOT
    return torch.utils.data.default_collate(batch)
for x in DataLoader([None, None], batch_size=2, collate_fn=collate):
    pass
"""
CHOICES = """
scores = torch.rand(4, 2).argmax(1)  # ROOT
nn.BCEWithLogitsLoss()(scores, torch.ones(4, dtype=torch.long))
"""
ONE_TOO_MANY = """
class Windows(Dataset):
    def __init__(self, series, width):
        self.series, self.width = series, width
    def __len__(self):
        return len(self.series) - self.width + 1  # ROOT
    def __getitem__(self, i):
        return self.series[i : i + self.width], self.series[i + self.width]
for x, y in DataLoader(Windows(torch.rand(20), 4), batch_size=4):
    pass
"""
LIST_OF_TENSORS = """
policy = nn.Linear(3, 2)
chances = []
for pull in range(4):
    chances.append(policy(torch.rand(5, 3)).log_softmax(1)[:, 0])
loss = -torch.tensor(chances).mean()  # ROOT
"""
ALL_FROZEN = """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
net[2] = nn.Linear(8, 3)
for p in net.parameters():
    p.requires_grad = False  # ROOT
loss = net(torch.rand(5, 4)).sum()
loss.backward()
"""
NO_RETURN = """
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        if self.training:
            return self.layer(x), x.mean()
        else:
            out = self.layer(x)  # ROOT
coder = Coder().eval()
made, spread = coder(torch.rand(2, 4))
"""
LOST_AXIS = """
class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
    def forward(self, x):
        return self.layer(x).squeeze()  # ROOT
scorer, criterion = Scorer(), nn.BCEWithLogitsLoss()
for x, y in DataLoader(TensorDataset(torch.rand(5, 4), torch.ones(5)), batch_size=2):
    scores = scorer(x)
    criterion(scores, y)
"""
LOST_IN_LOOP = """
scorer = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
optimizer = torch.optim.SGD(scorer.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.rand(5, 4), torch.ones(5)), batch_size=2):
    scores = scorer(x).squeeze()  # ROOT
    loss = nn.functional.binary_cross_entropy(scores, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
TUPLE_OF_ARRAYS = """
def score(answers):
    guesses = answers  # ROOT
    return np.argmax(guesses, axis=-1)
score((torch.zeros(6, 3).numpy(), torch.zeros(6, 2, 8).numpy()))
"""
CASES = {
    "one too many": (ONE_TOO_MANY, "pipeline.bad-lengths", "len(self.series) - 4"),
    "list of graphs": (LIST_OF_TENSORS, "loop.api-misuse", "torch.stack(chances)"),
    "all frozen": (ALL_FROZEN, "loss.not-scalar", "Freeze before"),
    "no return": (NO_RETURN, "pipeline.wrong-unpacking", "on every way through coder"),
    "lost axis": (LOST_AXIS, "model.missing-batch-axis", "never squeeze() alone"),
    "lost axis in the loop": (LOST_IN_LOOP, "model.missing-batch-axis", "never squeeze() alone"),
    "tuple of arrays": (TUPLE_OF_ARRAYS, "pipeline.wrong-unpacking", "guesses[0]"),
    "key": (KEY, "pipeline.missing-key", "'D00'"),
    "position": (POSITION, "pipeline.missing-key", "the shorter one (3)"),
    "no batch": (NO_BATCH, "pipeline.empty-loader", "at most 6"),
    "branch": (BRANCH, "loop.unassigned-name", "only where evaluates"),
    "no number": (NO_NUMBER, "data.unreadable-record", "'N/A' for missing"),
    "no JSON": (NO_JSON, "data.unreadable-record", "json.dumps"),
    "circle": (CIRCLE, "model.endless-recursion", "in a list"),
    "heads": (HEADS, "model.wrong-settings", "embed_dim=32"),
    "text": (TEXT_FOR_A_NUMBER, "model.wrong-settings", "type=int"),
    "forward": (NESTED_FORWARD, "model.wrong-settings", "out by one level"),
    "targets": (TARGETS, "loss.value-range", "into [0, 1]"),
    "masked": (ALL_MASKED, "loss.value-range", "at least one entry"),
    "split": (SPLIT, "pipeline.bad-lengths", "take the rest"),
    "order": (NOT_SORTED, "pipeline.bad-lengths", "enforce_sorted=False"),
    "leaf": (NO_LEAF, "loop.refused-value", "(torch.randn(4) * 0.1).requires_grad_()"),
    "flipped": (FLIPPED, "loop.refused-value", "image.copy()"),
    "several": (SEVERAL, "loop.refused-value", "loss.mean().item()"),
    "folder": (NO_FOLDER, "loop.refused-value", "os.makedirs('no/such/folder'"),
    "einsum": (EINSUM, "model.shape-mismatch", "16 along the axis d"),
    "mask": (MASK, "model.shape-mismatch", "mask[:, 1:]"),
    "precedence": (PRECEDENCE, "model.shape-mismatch", "(h != h2) | (w != w2)"),
    "empty batch": (EMPTY_BATCH, "pipeline.ragged-batch", "skip it in the loop"),
    "choices": (CHOICES, "model.wrong-dtype", "before argmax"),
}
# What two checks see; the first is the cause of the other by EXPLAINS.
TWICE = {"no batch", "one too many", "text", "targets"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in CASES if n not in TWICE])
def test_the_cause_its_line_and_the_fix_are_named_by_one_finding(name: str, tmp_path: Path) -> None:
    source, fault, advice = CASES[name]
    assert_named_by_one_finding(tmp_path, HEAD + source, fault, advice)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(TWICE))
def test_the_cause_is_among_what_is_named(name: str, tmp_path: Path) -> None:
    source, fault, advice = CASES[name]
    found = {f.fault: f for f in explanations(died(tmp_path, HEAD + source))}
    fix = found[fault].fix
    assert fix is not None and advice in fix.summary


def test_a_table_whose_rows_kept_their_labels_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    source = """
import pandas as pd
table = pd.DataFrame({"score": [0.1, 0.9, 0.8], "label": [0, 1, 2]})
labels = table[table["score"] > 0.5]["label"]
for position in range(len(labels)):
    labels[position]  # ROOT
"""
    assert_named_by_one_finding(tmp_path, source, "pipeline.missing-key", "labels.iloc[position]")


def test_an_empty_loader_that_did_no_harm_is_not_blamed(tmp_path: Path) -> None:
    source = """
for x in DataLoader(TensorDataset(torch.ones(2, 2)), batch_size=8, drop_last=True):
    pass
nn.Linear(3, 2)(torch.ones(2, 4))
"""
    found = [f.fault for f in explanations(died(tmp_path, HEAD + source))]
    assert found == ["model.width-mismatch"]


def _first_two(run: Run, fault: str) -> list[int]:
    found = {f.fault: f for f in explanations(run)}
    return [site.line for site in found[fault].where[:2]]


def test_the_data_set_that_promises_too_much_is_shown_at_its_length(tmp_path: Path) -> None:
    source = HEAD + ONE_TOO_MANY
    run = died(tmp_path, source)
    assert root_line(source) in _first_two(run, "pipeline.bad-lengths")


def test_the_dictionary_that_lacks_a_key_is_shown_where_it_is_written(tmp_path: Path) -> None:
    source = (
        HEAD
        + """
STAGES = {
    "first": {"width": 4, "lr": 0.1},
    "second": {"width": 4, "rate": 0.1},  # ROOT
}
def build(stage):
    return torch.optim.SGD([torch.zeros(1)], lr=stage["lr"])
for name in STAGES:
    build(STAGES[name])
"""
    )
    assert root_line(source) in _first_two(died(tmp_path, source), "pipeline.missing-key")


def test_a_checkpoint_that_holds_objects_is_shown_where_it_was_saved(tmp_path: Path) -> None:
    source = (
        HEAD
        + f"""
path = {str(tmp_path / "last.pt")!r}
best = np.mean([1.0, 2.0])
torch.save({{"best": best}}, path)  # ROOT
torch.load(path)
"""
    )
    assert root_line(source) in _first_two(died(tmp_path, source), "loop.refused-value")


def test_a_refusal_of_a_training_library_is_shown_where_its_setting_is_written(
    tmp_path: Path,
) -> None:
    pytest.importorskip("transformers")
    source = """
    import torch
    from transformers import GPT2Config, GPT2ForSequenceClassification

    config = GPT2Config(  # ROOT
        vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1, num_labels=2
    )
    model = GPT2ForSequenceClassification(config)
    model(input_ids=torch.ones(2, 4, dtype=torch.long))
    """
    [found] = explanations(died(tmp_path, source))
    assert (found.fault, found.status) == ("loop.api-misuse", "likely")
    assert root_line(source) in [site.line for site in found.where]
