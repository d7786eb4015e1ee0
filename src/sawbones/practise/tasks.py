"""Tasks of the generated scripts: data, model, loss and score as text, in names that a style fills in.

Every task makes its own data, learns within seconds on one core, and is one that a colleague might
be working on. `$name` stands for a name of the style, `@name` for a number that the seed draws.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Task:
    name: str
    about: str  # one line above the script
    data: str  # ends with $train_set and $val_set
    network: str  # the class $Net
    build: str  # arguments of $Net
    criterion: str
    hits: str  # how many of $out are right, as a tensor of booleans or errors
    score: str  # what the log calls it
    call: str = "$model($x)"
    collate: str = ""  # code of a collate function named collate, if there is one
    imports: tuple[str, ...] = ()
    numbers: dict[str, tuple[float, ...]] = field(default_factory=dict)
    loss_call: str = "$criterion($out, $y)"
    epochs: int = 6

    @property
    def normalises(self) -> bool:
        return "Norm" in self.network or "TransformerEncoderLayer" in self.network


_SPLIT = """\
$order = torch.randperm(len($features), generator=$rng)
$train_rows, $val_rows = $order[:@rows].sort().values, $order[@rows:]
"""
_STANDARDISED = """\
$mean, $spread = $features[$train_rows].mean(0), $features[$train_rows].std(0)
$features = ($features - $mean) / $spread
$train_set = TensorDataset($features[$train_rows], $labels[$train_rows])
$val_set = TensorDataset($features[$val_rows], $labels[$val_rows])
"""

SENSORS = Task(
    "sensors",
    "Which of the machine's states do the vibration sensors show?",
    """\
$rng = torch.Generator().manual_seed(@data_seed)
$centres = torch.randn(@classes, 16, generator=$rng)
$labels = torch.arange(@classes).repeat_interleave(@per_class)
$features = $centres[$labels] * 1.2 + torch.randn(len($labels), 16, generator=$rng)
$features = $features * torch.linspace(5, 80, 16) + 40
"""
    + _SPLIT
    + _STANDARDISED,
    """\
class $Net(nn.Module):
    def __init__(self, width, num_classes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(16, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, num_classes)

    def forward(self, $x):
        hidden = self.body($x)
        return self.head(hidden)
""",
    "@width, @classes",
    "nn.CrossEntropyLoss()",
    "$out.argmax(1) == $y",
    "accuracy",
    numbers={
        "classes": (4, 5, 6),
        "per_class": (260, 300),
        "rows": (900, 1000),
        "width": (48, 64, 96),
    },
)

PRICES = Task(
    "prices",
    "The price of a used car from its data sheet.",
    """\
$rng = torch.Generator().manual_seed(@data_seed)
$features = torch.randn(@samples, 10, generator=$rng) * torch.linspace(20, 90, 10) + 60
$truth = torch.randn(10, generator=$rng)
$labels = (($features - 60) / 50) @ $truth + 0.1 * torch.randn(@samples, generator=$rng)
"""
    + _SPLIT
    + _STANDARDISED,
    """\
class $Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, 1)

    def forward(self, $x):
        hidden = self.body($x)
        return self.head(hidden).squeeze(-1)
""",
    "@width",
    "nn.MSELoss()",
    "($out - $y).abs()",
    "mean error",
    numbers={"samples": (1300, 1500), "rows": (1000, 1100), "width": (32, 48, 64)},
    epochs=8,
)

CHURN = Task(
    "churn",
    "Will the customer cancel within a month?",
    """\
$rng = torch.Generator().manual_seed(@data_seed)
$features = torch.randn(@samples, 12, generator=$rng) * torch.linspace(10, 60, 12) + 25
$risk = (($features - 25) / 35) @ torch.randn(12, generator=$rng) - @bias
$labels = ($risk + 0.3 * torch.randn(@samples, generator=$rng) > 0).float()
"""
    + _SPLIT
    + _STANDARDISED,
    """\
class $Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, width), nn.LayerNorm(width), nn.GELU(), nn.Dropout(0.1))
        self.head = nn.Linear(width, 1)

    def forward(self, $x):
        hidden = self.body($x)
        return self.head(hidden).squeeze(-1)
""",
    "@width",
    "nn.BCEWithLogitsLoss(pos_weight=(1 - $labels[$train_rows]).sum() / $labels[$train_rows].sum())",
    "($out > 0) == ($y > 0.5)",
    "accuracy",
    numbers={"samples": (1500, 1700), "rows": (1200, 1300), "width": (32, 48), "bias": (0.6, 0.9)},
)

STRIPES = Task(
    "stripes",
    "Which way do the scratches on the part run?",
    """\
$rng = torch.Generator().manual_seed(@data_seed)
$labels = torch.arange(3).repeat_interleave(@per_class)
$features = torch.randint(0, 90, (len($labels), 1, 12, 12), generator=$rng)
for $i, kind in enumerate($labels.tolist()):
    at = int(torch.randint(2, 10, (1,), generator=$rng))
    if kind == 0:
        $features[$i, 0, at] += 150
    elif kind == 1:
        $features[$i, 0, :, at] += 150
    else:
        $features[$i, 0].diagonal().add_(150)
$features = $features.float() / 255
"""
    + _SPLIT
    + """\
$train_set = TensorDataset($features[$train_rows], $labels[$train_rows])
$val_set = TensorDataset($features[$val_rows], $labels[$val_rows])
""",
    """\
class $Net(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Linear(channels * 3 * 3, 3)

    def forward(self, $x):
        hidden = self.body($x).flatten(1)
        return self.head(hidden)
""",
    "@channels",
    "nn.CrossEntropyLoss()",
    "$out.argmax(1) == $y",
    "accuracy",
    numbers={"per_class": (280, 320), "rows": (700, 760), "channels": (8, 12)},
    epochs=5,
)

BLOCKS = Task(
    "blocks",
    "The grade of the steel from its spectrum, with a deep residual network.",
    """\
$rng = torch.Generator().manual_seed(@data_seed)
$centres = torch.randn(@classes, 24, generator=$rng)
$labels = torch.arange(@classes).repeat_interleave(@per_class)
$features = ($centres[$labels] + 0.9 * torch.randn(len($labels), 24, generator=$rng)) * 30 + 100
"""
    + _SPLIT
    + _STANDARDISED,
    """\
class $Net(nn.Module):
    def __init__(self, width, depth, num_classes):
        super().__init__()
        self.stem = nn.Linear(24, width)
        self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, $x):
        hidden = self.stem($x)
        for block in self.blocks:
            hidden = hidden + torch.relu(block(hidden))
        return self.head(self.norm(hidden))
""",
    "@width, @depth, @classes",
    "nn.CrossEntropyLoss()",
    "$out.argmax(1) == $y",
    "accuracy",
    numbers={
        "classes": (5, 6),
        "per_class": (220, 260),
        "rows": (900, 950),
        "width": (40, 56),
        "depth": (5, 6, 7),
    },
)

CHARS = Task(
    "chars",
    "A small language model over part numbers.",
    """\
$rng = torch.Generator().manual_seed(@data_seed)
$starts = torch.randint(0, 20, (@samples, 1), generator=$rng)
$strides = torch.randint(1, 4, (@samples, 1), generator=$rng)
$rows = ($starts + $strides * torch.arange(15)) % 20
$rows[:, :4] = torch.randint(0, 20, (@samples, 4), generator=$rng)
$train_set = TensorDataset($rows[:@rows, :-1], $rows[:@rows, 1:])
$val_set = TensorDataset($rows[@rows:, :-1], $rows[@rows:, 1:])
""",
    """\
class $Net(nn.Module):
    def __init__(self, vocabulary, width, heads):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(1, 14, width) * 0.02)
        self.mix = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.body = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, $x):
        hidden = self.embed($x) + self.positions
        batch, time, width = hidden.shape
        parts = self.mix(hidden).view(batch, time, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        future = torch.ones(time, time, dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
        context = (weights @ value).transpose(1, 2).reshape(batch, time, width)
        hidden = hidden + self.out(context)
        return self.head(hidden + self.body(hidden))
""",
    "20, @width, @heads",
    "nn.CrossEntropyLoss()",
    "$out.argmax(-1) == $y",
    "accuracy",
    loss_call="$criterion($out.flatten(0, 1), $y.flatten())",
    imports=("import math",),
    numbers={"samples": (620, 700), "rows": (500, 540), "width": (32, 48), "heads": (2, 4)},
    epochs=14,
)

REVIEWS = Task(
    "reviews",
    "Is the message a complaint? Bags of words of different length, padded to one width.",
    """\
PAD = 0
$rng = torch.Generator().manual_seed(@data_seed)
$samples = []
for $i in range(@samples):
    $label = $i % 2
    $length = int(torch.randint(4, 15, (1,), generator=$rng))
    $words = torch.randint(10, 60, ($length,), generator=$rng)
    $words[int(torch.randint(0, $length, (1,), generator=$rng))] = 1 + 4 * $label + $i % 4
    $samples.append(($words, $label))
$train_set, $val_set = $samples[:@rows], $samples[@rows:]
""",
    """\
class $Net(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=PAD)
        layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, $x):
        padding = $x == PAD
        hidden = self.body(self.embed($x), src_key_padding_mask=padding)
        hidden = hidden.masked_fill(padding[:, :, None], 0.0)
        return self.head(hidden.sum(1) / (~padding).sum(1, keepdim=True))
""",
    "60, @width",
    "nn.CrossEntropyLoss()",
    "$out.argmax(1) == $y",
    "accuracy",
    collate="""\
def collate(rows):
    width = max(len(words) for words, _ in rows)
    ids = torch.full((len(rows), width), PAD)
    for row, (words, _) in enumerate(rows):
        ids[row, : len(words)] = words
    return ids, torch.tensor([label for _, label in rows])
""",
    numbers={"samples": (1000, 1100), "rows": (800, 850), "width": (32, 48)},
    epochs=5,
)

TAGS = Task(
    "tags",
    "Which words of an address are the street? One tag per word, padded.",
    """\
PAD = 0
$rng = torch.Generator().manual_seed(@data_seed)
$samples = []
for $i in range(@samples):
    $length = int(torch.randint(5, 16, (1,), generator=$rng))
    $words = torch.randint(1, 40, ($length,), generator=$rng)
    $tags = ($words % 3) + 1
    $samples.append(($words, $tags))
$train_set, $val_set = $samples[:@rows], $samples[@rows:]
""",
    """\
class $Net(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.body = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 4)

    def forward(self, $x):
        hidden, _ = self.body(self.embed($x))
        return self.head(hidden)
""",
    "40, @width",
    "nn.CrossEntropyLoss(ignore_index=PAD)",
    "($out.argmax(-1) == $y)[$y != PAD]",
    "accuracy",
    loss_call="$criterion($out.flatten(0, 1), $y.flatten())",
    collate="""\
def collate(rows):
    width = max(len(words) for words, _ in rows)
    ids = torch.full((len(rows), width), PAD)
    targets = torch.full((len(rows), width), PAD)
    for row, (words, tags) in enumerate(rows):
        ids[row, : len(words)] = words
        targets[row, : len(tags)] = tags
    return ids, targets
""",
    numbers={"samples": (700, 800), "rows": (560, 600), "width": (24, 32)},
    epochs=4,
)

TASKS = (SENSORS, PRICES, CHURN, STRIPES, BLOCKS, CHARS, REVIEWS, TAGS)
