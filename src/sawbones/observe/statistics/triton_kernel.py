"""One pass over any number of tensors: a Triton kernel for gradients, one for parameters and their
updates.

Tensors are cut into chunks of CHUNK elements; a program takes chunk after chunk, whatever tensor it
belongs to, and leaves a few partial numbers per chunk. They are added up per tensor in float64, in
a fixed order, so the same tensors always give the same bits: those of gradients, measured on every
step, by whichever program finishes a tensor, those of parameters by a second, tiny launch.
Addresses come from a table in device memory; address 0 means no tensor.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-untyped-call,untyped-decorator"

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from sawbones.observe.statistics.device_buffer import AddressTable, upload

CHUNK = 16384  # what one program takes at a time
# what it loads at once; CHUNK / BLOCK stays under 1024, so that three counts share 32 bits
BLOCK = 1024
WARPS = 4
MAX_PROGRAMS = (
    1 << 20
)  # one program per chunk is 5 % faster than as many as fit the device; beyond this, several
TOTALS_BLOCK = 512

_TRITON_DTYPES = {
    torch.float16: tl.float16,
    torch.bfloat16: tl.bfloat16,
    torch.float32: tl.float32,
    torch.float64: tl.float64,
}


class ChunkTable:
    """How tensors of one type on one device are cut up, and room for the partial numbers. Made
    once, kept.
    """

    def __init__(
        self,
        dtype: torch.dtype,
        numels: Sequence[int],
        columns: Sequence[int],
        device: torch.device,
        chunk: int = CHUNK,
    ) -> None:
        counts = np.array([-(-numel // chunk) for numel in numels], np.int64)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        self.dtype = _TRITON_DTYPES[dtype]
        self.real = tl.float64 if dtype is torch.float64 else tl.float32
        self.chunk = chunk
        self.num_tensors = len(numels)
        self.num_chunks = int(first[-1])
        self.numels = upload(np.array(numels, np.int64), device)
        self.columns = upload(np.array(columns, np.int32), device)
        self.first_chunk = upload(first, device)
        self.chunk_tensor = upload(
            np.repeat(np.arange(len(numels), dtype=np.int32), counts), device
        )
        self.chunk_index = upload(
            np.concatenate([np.arange(b - a, dtype=np.int32) for a, b in pairwise(first.tolist())]),
            device,
        )
        self.gradient_sums = torch.empty((2, self.num_chunks), dtype=torch.float64, device=device)
        self.gradient_counts = torch.empty((3, self.num_chunks), dtype=torch.int32, device=device)
        self.parameter_sums = torch.empty((2, self.num_chunks), dtype=torch.float64, device=device)
        self.finished = torch.zeros(
            len(numels), dtype=torch.int32, device=device
        )  # chunks of each tensor, while a pass runs
        self.num_programs = min(self.num_chunks, MAX_PROGRAMS)
        self.runners: dict[
            Any, Any
        ] = {}  # kernels compiled for this table, launched without asking Triton which one is meant


def measure_gradients(
    table: ChunkTable,
    gradients: AddressTable,
    threshold: torch.Tensor,
    results: torch.Tensor,
    block: int = BLOCK,
    warps: int = WARPS,
) -> None:
    """Rows 0 to 4 of `results`: L2, largest magnitude, zero share, non-finite count, share below
    `threshold`.
    """
    _launch(
        table,
        _gradients,
        table.num_programs,
        (gradients.aligned, block, results.shape[1]),
        warps,
        (
            gradients.on_device,
            table.numels,
            table.chunk_tensor,
            table.chunk_index,
            table.first_chunk,
            table.columns,
            threshold,
            table.gradient_sums,
            table.gradient_counts,
            table.finished,
            table.num_chunks,
            results,
            results.shape[1],
        ),
        {
            "DTYPE": table.dtype,
            "REAL": table.real,
            "ALIGNED": gradients.aligned,
            "CHUNK": table.chunk,
            "BLOCK": block,
            "TOTALS": TOTALS_BLOCK,
        },
    )


def measure_parameters(
    table: ChunkTable,
    parameters: AddressTable,
    copies: AddressTable | None,
    results: torch.Tensor,
    *,
    compare: bool,
    store: bool,
    block: int = BLOCK,
    warps: int = WARPS,
) -> None:
    """Rows 5 and 6 of `results`: L2 of the parameter and, with `compare`, of its difference from
    the copy; with `store`
    the copy is refreshed in the same pass."""
    held = parameters if copies is None else copies
    aligned = parameters.aligned and held.aligned
    _launch(
        table,
        _parameter_chunks,
        table.num_programs,
        (aligned, compare, store, block),
        warps,
        (
            parameters.on_device,
            held.on_device,
            table.numels,
            table.chunk_tensor,
            table.chunk_index,
            table.parameter_sums,
            table.num_chunks,
        ),
        {
            "DTYPE": table.dtype,
            "REAL": table.real,
            "ALIGNED": aligned,
            "COMPARE": compare,
            "STORE": store,
            "CHUNK": table.chunk,
            "BLOCK": block,
        },
    )
    _launch(
        table,
        _parameter_totals,
        table.num_tensors,
        (compare, results.shape[1]),
        4,
        (
            parameters.on_device,
            table.first_chunk,
            table.columns,
            table.parameter_sums,
            table.num_chunks,
            results,
            results.shape[1],
        ),
        {"COMPARE": compare, "BLOCK": TOTALS_BLOCK},
    )


def _launch(table, kernel, num_programs, variant, warps, args, constants) -> None:
    """The first time as Triton has it. From then on the compiled kernel is launched directly:
    finding out from the arguments which of a function's kernels is meant takes three times as long
    as the launch. It depends on the alignment of pointers, which is
    that of the allocator, on whole numbers that never change for a table, and on `variant`."""
    key = kernel, variant, warps
    runner = table.runners.get(key)
    if runner is not None:
        try:
            runner(
                *[a.data_ptr() if isinstance(a, torch.Tensor) else a for a in args],
                *constants.values(),
            )
            return
        except TypeError:  # a Triton whose launcher wants something else
            table.runners[key] = None
    compiled = kernel[(num_programs,)](*args, **constants, num_warps=warps)
    if key not in table.runners:
        table.runners[key] = _runner(compiled, num_programs)


def _runner(compiled: Any, num_programs: int) -> Any:
    try:
        return compiled[(num_programs, 1, 1)]
    except (TypeError, AttributeError):  # as above
        return None


@triton.jit
def _add_squares(x, middle, small, large):
    # Squares of float32 leave float32 below 1e-19 and above 1e19. Three sums, of which one is
    # always good, cost two
    # more multiplications and two more additions; looking for the maximum first would cost a wait
    # for all threads.
    middle += x * x
    up = x * 1.2676506002282294e30  # 2**100
    small += up * up
    down = x * 8.271806125530277e-25  # 2**-80
    large += down * down
    return middle, small, large


@triton.jit
def _good_sum(middle, small, large):
    # NaN is in neither range and infinity in all three sums, so both come through.
    m = tl.sum(middle, axis=0).to(tl.float64)
    s = tl.sum(small, axis=0).to(tl.float64) * 6.223015277861142e-61
    g = tl.sum(large, axis=0).to(tl.float64) * 1.461501637330903e48
    return tl.where(m < 1e-30, s, tl.where(m > 1e35, g, m))


@triton.jit
def _add_gradient(x, threshold, middle, small, large, peak, counts, REAL: tl.constexpr):
    x = x.to(REAL)
    middle, small, large = _add_squares(x, middle, small, large)
    size = tl.abs(x)
    peak = tl.maximum(peak, size)
    counts += (size == 0).to(
        tl.int32
    )  # ten bits for each of three counts: a lane sees at most CHUNK / BLOCK values
    counts += tl.where(size < float("inf"), 0, 1024)
    counts += tl.where(size < threshold, 1048576, 0)
    return middle, small, large, peak, counts


@triton.jit
def _gradients(
    addresses,
    numels,
    chunk_tensor,
    chunk_index,
    first_chunk,
    columns,
    threshold_at,
    sums,
    counts_at,
    finished,
    num_chunks,
    results,
    width,
    DTYPE: tl.constexpr,
    REAL: tl.constexpr,
    ALIGNED: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
    TOTALS: tl.constexpr,
):
    offsets = tl.arange(0, BLOCK)
    threshold = tl.load(threshold_at).to(REAL)
    for chunk in range(tl.program_id(0), num_chunks, tl.num_programs(0)):
        tensor = tl.load(chunk_tensor + chunk)
        address = tl.load(addresses + tensor)
        if address != 0:
            start = tl.load(chunk_index + chunk).to(tl.int64) * CHUNK
            extent = tl.minimum(tl.load(numels + tensor) - start, CHUNK).to(tl.int32)
            values = address.to(tl.pointer_type(DTYPE)) + start
            if ALIGNED:
                values = tl.multiple_of(values, 16)
            middle = tl.zeros([BLOCK], REAL)
            small = tl.zeros([BLOCK], REAL)
            large = tl.zeros([BLOCK], REAL)
            peak = tl.zeros([BLOCK], REAL)
            counts = tl.zeros([BLOCK], tl.int32)
            # A mask forbids wide loads, so only what is left at a tensor's end has one.
            whole = extent // BLOCK * BLOCK
            for at in range(0, whole, BLOCK):
                x = tl.load(values + at + offsets)
                middle, small, large, peak, counts = _add_gradient(
                    x, threshold, middle, small, large, peak, counts, REAL
                )
            if whole < extent:
                x = tl.load(values + whole + offsets, mask=offsets < extent - whole, other=0.0)
                middle, small, large, peak, counts = _add_gradient(
                    x, threshold, middle, small, large, peak, counts, REAL
                )
            padding = tl.cdiv(extent, BLOCK) * BLOCK - extent  # read as zeros
            zeros = tl.sum(counts & 1023, axis=0)
            tl.store(sums + chunk, _good_sum(middle, small, large))
            tl.store(sums + num_chunks + chunk, tl.max(peak, axis=0).to(tl.float64))
            tl.store(counts_at + chunk, zeros - padding)
            tl.store(counts_at + num_chunks + chunk, tl.sum((counts >> 10) & 1023, axis=0))
            tl.store(counts_at + 2 * num_chunks + chunk, tl.sum(counts >> 20, axis=0) - zeros)
        # Whoever finishes a tensor's last chunk adds all of them up, in their order: a second
        # launch would cost the host more.
        tl.debug_barrier()
        first = tl.load(first_chunk + tensor)
        end = tl.load(first_chunk + tensor + 1)
        if tl.atomic_add(finished + tensor, 1, sem="acq_rel") == end - first - 1:
            tl.store(finished + tensor, 0)
            out = results + tl.load(columns + tensor)
            if address == 0:
                for row in tl.static_range(5):
                    tl.store(out + row * width, -1.0)
            else:
                _gradient_totals(
                    out,
                    width,
                    tl.load(numels + tensor),
                    first,
                    end,
                    sums,
                    counts_at,
                    num_chunks,
                    TOTALS,
                )


@triton.jit
def _gradient_totals(out, width, numel, first, end, sums, counts, num_chunks, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float64)
    peak = tl.zeros([BLOCK], tl.float64)
    zeros = tl.zeros([BLOCK], tl.int64)
    nonfinite = tl.zeros([BLOCK], tl.int64)
    subnormal = tl.zeros([BLOCK], tl.int64)
    for at in range(first, end, BLOCK):
        chunks = at + tl.arange(0, BLOCK)
        inside = chunks < end
        # Other programs wrote these: past the cache of this one's processor.
        total += tl.load(sums + chunks, mask=inside, other=0.0, cache_modifier=".cg")
        peak = tl.maximum(
            peak, tl.load(sums + num_chunks + chunks, mask=inside, other=0.0, cache_modifier=".cg")
        )
        zeros += tl.load(counts + chunks, mask=inside, other=0, cache_modifier=".cg").to(tl.int64)
        nonfinite += tl.load(
            counts + num_chunks + chunks, mask=inside, other=0, cache_modifier=".cg"
        ).to(tl.int64)
        subnormal += tl.load(
            counts + 2 * num_chunks + chunks, mask=inside, other=0, cache_modifier=".cg"
        ).to(tl.int64)
    l2 = tl.sqrt(tl.sum(total, axis=0))
    size = numel.to(tl.float64)
    # Maxima leave NaN out, sums carry it.
    largest = tl.where(l2 == l2, tl.max(peak, axis=0), l2)
    tl.store(out, l2.to(tl.float32))
    tl.store(out + width, largest.to(tl.float32))
    tl.store(out + 2 * width, (tl.sum(zeros, axis=0).to(tl.float64) / size).to(tl.float32))
    tl.store(out + 3 * width, tl.sum(nonfinite, axis=0).to(tl.float32))
    tl.store(out + 4 * width, (tl.sum(subnormal, axis=0).to(tl.float64) / size).to(tl.float32))


@triton.jit
def _parameter_chunks(
    addresses,
    copies,
    numels,
    chunk_tensor,
    chunk_index,
    sums,
    num_chunks,
    DTYPE: tl.constexpr,
    REAL: tl.constexpr,
    ALIGNED: tl.constexpr,
    COMPARE: tl.constexpr,
    STORE: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offsets = tl.arange(0, BLOCK)
    for chunk in range(tl.program_id(0), num_chunks, tl.num_programs(0)):
        tensor = tl.load(chunk_tensor + chunk)
        address = tl.load(addresses + tensor)
        if address != 0:
            start = tl.load(chunk_index + chunk).to(tl.int64) * CHUNK
            extent = tl.minimum(tl.load(numels + tensor) - start, CHUNK).to(tl.int32)
            values = address.to(tl.pointer_type(DTYPE)) + start
            held = tl.load(copies + tensor).to(tl.pointer_type(DTYPE)) + start
            if ALIGNED:
                values = tl.multiple_of(values, 16)
                held = tl.multiple_of(held, 16)
            middle = tl.zeros([BLOCK], REAL)
            small = tl.zeros([BLOCK], REAL)
            large = tl.zeros([BLOCK], REAL)
            moved_middle = tl.zeros([BLOCK], REAL)
            moved_small = tl.zeros([BLOCK], REAL)
            moved_large = tl.zeros([BLOCK], REAL)
            whole = extent // BLOCK * BLOCK
            for at in range(0, whole, BLOCK):
                x = tl.load(values + at + offsets)
                middle, small, large = _add_squares(x.to(REAL), middle, small, large)
                if COMPARE:
                    moved = x.to(REAL) - tl.load(held + at + offsets).to(REAL)
                    moved_middle, moved_small, moved_large = _add_squares(
                        moved, moved_middle, moved_small, moved_large
                    )
                if STORE:
                    tl.store(held + at + offsets, x)
            if whole < extent:
                inside = offsets < extent - whole
                x = tl.load(values + whole + offsets, mask=inside, other=0.0)
                middle, small, large = _add_squares(x.to(REAL), middle, small, large)
                if COMPARE:
                    moved = x.to(REAL) - tl.load(held + whole + offsets, mask=inside, other=0.0).to(
                        REAL
                    )
                    moved_middle, moved_small, moved_large = _add_squares(
                        moved, moved_middle, moved_small, moved_large
                    )
                if STORE:
                    tl.store(held + whole + offsets, x, mask=inside)
            tl.store(sums + chunk, _good_sum(middle, small, large))
            if COMPARE:
                tl.store(
                    sums + num_chunks + chunk, _good_sum(moved_middle, moved_small, moved_large)
                )


@triton.jit
def _parameter_totals(
    addresses,
    first_chunk,
    columns,
    sums,
    num_chunks,
    results,
    width,
    COMPARE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    tensor = tl.program_id(0)
    out = results + 5 * width + tl.load(columns + tensor)
    if tl.load(addresses + tensor) == 0:
        tl.store(out, -1.0)
        tl.store(out + width, -1.0)
    else:
        total = tl.zeros([BLOCK], tl.float64)
        moved = tl.zeros([BLOCK], tl.float64)
        end = tl.load(first_chunk + tensor + 1)
        for at in range(tl.load(first_chunk + tensor), end, BLOCK):
            chunks = at + tl.arange(0, BLOCK)
            inside = chunks < end
            total += tl.load(sums + chunks, mask=inside, other=0.0)
            if COMPARE:
                moved += tl.load(sums + num_chunks + chunks, mask=inside, other=0.0)
        tl.store(out, tl.sqrt(tl.sum(total, axis=0)).to(tl.float32))
        if COMPARE:
            tl.store(out + width, tl.sqrt(tl.sum(moved, axis=0)).to(tl.float32))
