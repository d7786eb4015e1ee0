"""What the statistics engine alone costs: bare and watched steps of the same training, alternating
in one process.

    python benchmarks/engine.py                        # CPU: small GPT, and models of 1 ms a step
    python benchmarks/engine.py --out folder           # with a CUDA device: GPT-2 124M, eager and
    compiled

Bare, watched and again bare blocks take turns; a ratio is the median of the watched block's time
over the mean of its two bare neighbours, the null ratio that of the second bare block over the
first. Spread: the middle half.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

# Spinning OpenMP threads distort timings on a busy machine; this has to be set before torch is
# imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from sawbones.observe.statistics.engine import StatisticsEngine


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = (
            self.qkv(self.norm_1(x))
            .view(batch, length, 3, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        mixed = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary: int, length: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def compare(
    bare: Callable[[], object],
    watched: Callable[[], object],
    steps: int,
    rounds: int,
    settle: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Blocks of `steps` steps; `settle` waits for the device, so a block holds all of its own
    work.
    """

    def timed(step: Callable[[], object]) -> float:
        settle()
        start = clock()
        for _ in range(steps):
            step()
        settle()
        return (clock() - start) / steps * 1e3

    for _ in range(5):  # clocks, caches and the allocator come to rest
        timed(bare)
        timed(watched)
    times = np.array([[timed(bare), timed(watched), timed(bare)] for _ in range(rounds)])
    ratio = times[:, 1] / times[:, [0, 2]].mean(1)
    null = times[:, 2] / times[:, 0]
    quartiles = {
        name: np.percentile(values, [25, 75]) for name, values in (("ratio", ratio), ("null", null))
    }
    return {
        "bare_ms": float(np.median(times[:, [0, 2]])),
        "watched_ms": float(np.median(times[:, 1])),
        "added_us": float(np.median(times[:, 1] - times[:, [0, 2]].mean(1))) * 1e3,
        "ratio": float(np.median(ratio)),
        "ratio_low": float(quartiles["ratio"][0]),
        "ratio_high": float(quartiles["ratio"][1]),
        "null": float(np.median(null)),
        "null_low": float(quartiles["null"][0]),
        "null_high": float(quartiles["null"][1]),
    }


def trainer(
    model: nn.Module,
    loss_of: Callable[[], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    full: bool = False,
) -> tuple[Callable[[], object], Callable[[], object]]:
    # Shallow rows leave out the regular full steps, whose price has a row of its own, but not the
    # judging of norms.
    engine = StatisticsEngine(full_every=10**9)
    params = list(model.parameters())
    count = 0

    def bare() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss_of().backward()
        optimizer.step()

    def watched() -> None:
        nonlocal count
        optimizer.zero_grad(set_to_none=True)
        loss_of().backward()
        engine.before_step(count, params, [p.grad for p in params], full=full or None)
        optimizer.step()
        engine.after_step(count, params)
        engine.ready()
        count += 1

    return bare, watched


def gpt2_on_cuda(batch: int, compiled: bool, rounds: int) -> dict[str, float]:
    torch.manual_seed(0)
    model = GPT(50304, 1024, 12, 768, 12).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    ids = torch.randint(0, 50257, (batch, 1025), device="cuda")
    run = torch.compile(model) if compiled else model

    def loss_of() -> torch.Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            return run(ids[:, :-1], ids[:, 1:])

    bare, watched = trainer(model, loss_of, optimizer)
    return compare(bare, watched, 4, rounds, settle=torch.cuda.synchronize)


def small_gpt_on_cpu(rounds: int, full: bool) -> dict[str, float]:
    """By processor time, which other programs on the machine disturb less."""
    torch.manual_seed(0)
    model = GPT(4096, 128, 6, 256, 8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    ids = torch.randint(0, 4096, (8, 129))
    bare, watched = trainer(model, lambda: model(ids[:, :-1], ids[:, 1:]), optimizer, full)
    return compare(bare, watched, 1, rounds, clock=time.process_time)


def tiny_model_on_cpu(rounds: int, full: bool) -> dict[str, float]:
    """Ten tensors."""
    torch.manual_seed(0)
    model = nn.Sequential(*[layer for _ in range(5) for layer in (nn.Linear(64, 64), nn.ReLU())])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(32, 64)
    bare, watched = trainer(model, lambda: model(x).square().mean(), optimizer, full)
    return compare(bare, watched, 20, rounds, clock=time.process_time)


def passes_alone() -> dict[str, float]:
    """Each pass over the parameters of GPT-2 124M by device events, in microseconds of device
    time.
    """
    from sawbones.observe.statistics import triton_kernel
    from sawbones.observe.statistics.device_buffer import AddressTable

    device = torch.device("cuda", torch.cuda.current_device())
    params = [p.detach() for p in GPT(50304, 1024, 12, 768, 12).cuda().parameters()]
    grads, copies = [torch.randn_like(p) for p in params], [p.clone() for p in params]
    numels = [p.numel() for p in params]
    results = torch.empty((7, len(params)), device=device)
    threshold = torch.full(
        (1,), torch.finfo(torch.float32).tiny, dtype=torch.float64, device=device
    )
    tables = {}
    for name, tensors in (("grads", grads), ("params", params), ("copies", copies)):
        tables[name] = AddressTable(len(params), device)
        tables[name].update([t.data_ptr() for t in tensors])
    found = {"bytes_of_gradients": float(sum(g.numel() * 4 for g in grads))}
    shapes = [
        (16384, 1024, 4, 16),
        (16384, 1024, 4, 10**6),
        (16384, 2048, 8, 8),
        (16384, 2048, 4, 16),
        (8192, 1024, 4, 16),
        (32768, 1024, 4, 16),
        (16384, 512, 4, 16),
        (16384, 4096, 8, 8),
    ]
    for chunk, block, warps, per_processor in shapes:
        table = triton_kernel.ChunkTable(torch.float32, numels, range(len(params)), device, chunk)
        processors = torch.cuda.get_device_properties(device).multi_processor_count
        table.num_programs = min(table.num_chunks, processors * per_processor)
        sizes = {"block": block, "warps": warps}

        def gradients(
            table: triton_kernel.ChunkTable = table, sizes: dict[str, int] = sizes
        ) -> None:
            triton_kernel.measure_gradients(table, tables["grads"], threshold, results, **sizes)

        def parameters(
            table: triton_kernel.ChunkTable = table, sizes: dict[str, int] = sizes
        ) -> None:
            triton_kernel.measure_parameters(
                table,
                tables["params"],
                tables["copies"],
                results,
                compare=True,
                store=True,
                **sizes,
            )

        for name, launch in (("gradients", gradients), ("parameters", parameters)):
            found[f"{name} {chunk}/{block}/{warps}/{per_processor}"] = _device_us(launch)
    source, target = torch.empty(2**28, device=device), torch.empty(2**28, device=device)
    found["copy_of_1_GiB"] = _device_us(lambda: target.copy_(source))
    return found


def _device_us(launch: Callable[[], object]) -> float:
    times = []
    for i in range(30):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(
            200_000
        )  # the launches queue up behind this, so only the device's own time is between events
        start.record()
        launch()
        end.record()
        end.synchronize()
        if i >= 5:
            times.append(start.elapsed_time(end) * 1e3)
    return float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="folder for engine.json")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", nargs="*", help="names of the rows to run")
    args = parser.parse_args()
    rows: dict[str, Callable[[], dict[str, float]]] = {}
    if torch.cuda.is_available():
        rows["passes alone"] = passes_alone
        for compiled in (False, True):
            for batch in (8, 32):
                how = "compiled" if compiled else "eager"
                rows[f"cuda {batch}x1024 {how}"] = lambda b=batch, c=compiled: gpt2_on_cuda(
                    b, c, args.rounds
                )
    else:
        for full in (False, True):
            kind = "full" if full else "shallow"
            rows[f"cpu small gpt {kind}"] = lambda f=full: small_gpt_on_cpu(args.rounds, f)
            rows[f"cpu tiny {kind}"] = lambda f=full: tiny_model_on_cpu(args.rounds, f)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    hardware = (
        torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else platform.processor() or platform.machine()
    )
    about = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "hardware": hardware,
        "commit": commit,
    }
    results: dict[str, object] = {"about": about, "command": " ".join(sys.argv)}
    print(json.dumps(about))
    for name, measure in rows.items():
        if args.only and name not in args.only:
            continue
        row = results[name] = measure()
        print(name, json.dumps({key: round(value, 4) for key, value in row.items()}), flush=True)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if args.out:
            args.out.mkdir(parents=True, exist_ok=True)
            (args.out / "engine.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
