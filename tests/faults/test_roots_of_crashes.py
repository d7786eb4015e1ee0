"""The line where the mistake stands, not the one where it shows: each script dies somewhere else
than at the line marked ROOT.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died, explanations, root_line

from sawbones import faults

HEAD = """
    import numpy as np
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, TensorDataset
"""

EVALUATION_OF_ANOTHER_SIZE = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 4, 3, padding=1)
            self.fc = nn.Linear(4 * 8 * 8, 2)

        def forward(self, picture):
            maps = torch.relu(self.conv(picture))
            return self.fc(maps.flatten(1))

    def pictures(count, side):
        made = torch.randn(count, 1, side, side)
        return TensorDataset(made, torch.randint(0, 2, (count,)))

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


    for a, b in DataLoader(pictures(32, 8), batch_size=8):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(a), b).backward()
        optimizer.step()


    held_out = pictures(16, 10)  # ROOT




    def score(batches):
        return [net(a).argmax(1) for a, _ in batches]


    score(DataLoader(held_out, batch_size=8))
"""

DOUBLES_OF_A_FUNCTION = """
    def weights_of(rows):



        return np.exp(-np.arange(rows) / 7.0)  # ROOT



    class Rows(Dataset):
        def __init__(self, rows):
            self.features = np.random.rand(rows, 3).astype("float32")
            self.weight = weights_of(rows)

        def __len__(self):
            return len(self.features)

        def __getitem__(self, at):
            return self.features[at], self.weight[at]



    layer = nn.Linear(4, 1)


    def forward(features, weight):
        both = torch.cat((features, weight[:, None]), 1)
        return layer(both)


    for features, weight in DataLoader(Rows(16), batch_size=4):
        forward(features, weight)
"""

TARGETS_PER_ROW = """
    def distance(prediction, target):
        return (prediction - target).abs()



    def objective(model, x, y):
        prediction = model(x)


        gap = (prediction - y).pow(2).sum(1)  # ROOT



        return gap




    def train(model, x, y):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        value = objective(model, x, y)
        optimizer.zero_grad()
        value.backward()


    train(nn.Linear(3, 2), torch.randn(8, 3), torch.randn(8, 2))
"""

SHORT_LAST_PIECE = """
    def pieces(signal, width):
        found = []
        at = 0
        while at < len(signal):
            found.append({"x": signal[at : at + width]})  # ROOT
            at += width
        return found





    class Pieces(Dataset):
        def __init__(self, signal):
            self.rows = pieces(signal, 10)

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, place):
            return self.rows[place]


    for batch in DataLoader(Pieces(torch.randn(45)), batch_size=8):
        pass
"""

ALL_FROZEN_BY_A_METHOD = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

        def freeze(self):
            for weight in self.parameters():
                weight.requires_grad_(False)

        def forward(self, x):
            return self.head(torch.relu(self.body(x)))


    def start(net):
        learning = filter(lambda p: p.requires_grad, net.parameters())
        return torch.optim.Adam(list(learning), lr=0.1)



    net = Net()
    net.freeze()  # ROOT





    start(net)
"""

PASSED_WIDTH = """
    class Net(nn.Module):
        def __init__(self, columns, hidden):
            super().__init__()
            self.first = nn.Linear(columns, hidden)
            self.last = nn.Linear(hidden, 1)

        def forward(self, x):
            return self.last(torch.relu(self.first(x)))



    def build(setting):



        return Net(setting - 1, 16)  # ROOT



    x = torch.randn(8, 12)
    net = build(x.shape[1])


    net(x)
"""

ODD_SIDE = """
    class Down(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
            self.up = nn.ConvTranspose2d(4, 4, 2, stride=2)

        def forward(self, x):
            wide = self.a(x)
            low = self.b(nn.functional.max_pool2d(wide, 2))
            back = self.up(low)


            return torch.cat([wide, back], 1)



    def images(side):
        grid = torch.linspace(0, 1, side)
        return (grid[:, None] * grid)[None, None].repeat(4, 1, 1, 1)



    net = Down()
    net(images(16))


    net(images(27))  # ROOT
"""

LATER_WORDS = """
    class Tagger(nn.Module):
        def __init__(self, words):
            super().__init__()
            self.table = nn.Embedding(words, 4)
            self.out = nn.Linear(4, 2)

        def forward(self, ids):
            return self.out(self.table(ids).mean(1))


    numbers = {}
    for word in "a b c d".split():
        numbers[word] = len(numbers)



    model = Tagger(len(numbers))


    numbers.update({"e": 4, "f": 5})  # ROOT




    texts = ["a b", "c d", "e f"]
    ids = torch.tensor([[numbers[word] for word in text.split()] for text in texts])


    model(ids)
"""

SCRIPTS = {
    "model.width-mismatch": (EVALUATION_OF_ANOTHER_SIZE, PASSED_WIDTH),
    "model.wrong-dtype": (DOUBLES_OF_A_FUNCTION,),
    "loss.not-scalar": (TARGETS_PER_ROW,),
    "pipeline.ragged-batch": (SHORT_LAST_PIECE,),
    "model.no-parameters": (ALL_FROZEN_BY_A_METHOD,),
    "model.shape-mismatch": (ODD_SIDE,),
}


@pytest.mark.parametrize(
    ("fault", "source"), [(fault, HEAD + s) for fault, found in SCRIPTS.items() for s in found]
)
def test_the_line_that_made_the_value_stands_before_the_one_that_refused_it(
    tmp_path: Path, fault: str, source: str
) -> None:
    (finding,) = [f for f in explanations(died(tmp_path, source)) if f.fault == fault]
    assert abs(finding.where[0].line - root_line(source)) <= 1
    assert len(finding.where) > 1  # where it shows is kept


def test_words_that_came_after_the_table_was_built_are_named(tmp_path: Path) -> None:
    source = HEAD + LATER_WORDS
    found = faults.read(died(tmp_path, source), strict=True).findings
    (finding,) = [f for f in found if f.fault == "pipeline.token-out-of-vocab"]
    assert root_line(source) in [site.line for site in finding.where[:2]]


def test_the_number_of_planned_steps_is_followed_to_its_computation(tmp_path: Path) -> None:
    source = (
        HEAD
        + """
    class Plan:
        def __init__(self, rows, size, rounds):
            self.rounds = rounds



            self.steps = rounds * (rows // size)  # ROOT





    def scheduler(optimizer, plan):
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, plan.steps)


    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = Plan(10, 4, 3)
    moving = scheduler(optimizer, plan)
    for _ in range(plan.rounds):
        for x in torch.randn(10, 3).split(4):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
            moving.step()
"""
    )
    found = faults.read(died(tmp_path, source), strict=True).findings
    (finding,) = [f for f in found if f.fault == "optimizer.schedule"]
    assert finding.where[0].line == root_line(source)


@pytest.mark.filterwarnings("ignore:Got pickle error")
def test_a_function_that_cannot_be_pickled_is_named_where_it_is_written(tmp_path: Path) -> None:
    source = (
        HEAD
        + """
    def make(scale):
        def scaled(rows):  # ROOT
            return torch.stack([row[0] for row in rows]) * scale





        return DataLoader(
            TensorDataset(torch.randn(8, 2)),
            batch_size=4,
            num_workers=1,
            multiprocessing_context="spawn",
            collate_fn=scaled,
        )


    parts = make(2.0)
    for batch in parts:
        pass
"""
    )
    (finding,) = explanations(died(tmp_path, source))
    assert finding.fault == "pipeline.worker-crash"
    assert finding.where[0].line == root_line(source)


def test_nothing_of_the_users_is_asked_on_the_way_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (
        HEAD
        + """
    class Touchy:
        quiet = False

        def __getattribute__(self, name):
            if not Touchy.quiet:
                print("ASKED", name)
            return object.__getattribute__(self, name)

        def __eq__(self, other):
            print("ASKED eq")
            return True

        def __bool__(self):
            print("ASKED bool")
            return True

        def __getitem__(self, at):
            return torch.ones(2, 3, dtype=torch.float64)  # ROOT


    def chosen(touchy, flag=None):
        if touchy == 1:
            x = touchy[0]
        elif touchy:
            x = touchy[1]
        return x if flag is None else touchy


    Touchy.quiet = True
    touchy = Touchy()
    x = chosen.__call__(touchy)
    rows = chosen(touchy)
    Touchy.quiet = False
    print("DIES")
    nn.Linear(3, 1)(rows)
"""
    )
    (finding,) = explanations(died(tmp_path, source))
    assert finding.fault == "model.wrong-dtype"
    assert root_line(source) in [site.line for site in finding.where[:2]]
    assert "ASKED" not in capsys.readouterr().out.partition("DIES")[2]


def test_a_flag_decides_which_of_two_lines_it_was(tmp_path: Path) -> None:
    source = (
        HEAD
        + """
    class Rows:
        def __init__(self, precise):
            self.precise = precise
            self.x = np.ones((4, 3), dtype="float32")






        def get(self):
            if self.precise:
                return torch.from_numpy(self.x.astype("float64"))  # ROOT
            return torch.from_numpy(self.x)


    rows = Rows(True)


    def run(model, rows):
        given = rows.get()
        return model(given)


    run(nn.Linear(3, 1), rows)
"""
    )
    (finding,) = explanations(died(tmp_path, source))
    assert finding.where[0].line == root_line(source)


@pytest.mark.filterwarnings("ignore")
def test_a_batch_that_a_trainer_refuses_is_followed_to_what_the_data_set_returns(
    tmp_path: Path,
) -> None:
    pytest.importorskip("transformers")
    source = (
        HEAD
        + f"""
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


    class Texts(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, at):
            return dict(input_ids=torch.arange(4), answer=at % 2)  # ROOT


    config = BertConfig(
        vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8, max_position_embeddings=8,
    )
    settings = TrainingArguments({str(tmp_path / "out")!r}, report_to=[], use_cpu=True)
    trainer = Trainer(BertForSequenceClassification(config), settings, train_dataset=Texts())
    trainer.train()
"""
    )
    (finding,) = explanations(died(tmp_path, source))
    assert root_line(source) in [site.line for site in finding.where[:2]]
