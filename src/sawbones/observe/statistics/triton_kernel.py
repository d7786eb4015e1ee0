"""One pass over any number of tensors: a Triton kernel for gradients, one for parameters and their updates.

Tensors are cut into chunks of CHUNK elements; a program takes chunk after chunk, whatever tensor it belongs to, and
leaves a few partial numbers per chunk. A second, tiny launch adds them up per tensor in float64, in a fixed order, so
the same tensors always give the same bits. Addresses come from a table in device memory; address 0 means no tensor.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-untyped-call,untyped-decorator"

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
import triton
import triton.language as tl

from sawbones.observe.statistics.device_buffer import AddressTable, upload

CHUNK = 8192  # at most 16384: two counts share 32 bits
WARPS = 8
PROGRAMS_PER_PROCESSOR = 8  # enough loads in flight to fill the memory bus
TOTALS_BLOCK = 512

_TRITON_DTYPES = {
    torch.float16: tl.float16,
    torch.bfloat16: tl.bfloat16,
    torch.float32: tl.float32,
    torch.float64: tl.float64,
}


class ChunkTable:
    """How tensors of one type on one device are cut up, and room for the partial numbers. Made once, kept."""

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
        self.wide = dtype is torch.float64
        self.chunk = chunk
        self.num_tensors = len(numels)
        self.num_chunks = int(first[-1])
        self.numels = upload(np.array(numels, np.int64), device)
        self.columns = upload(np.array(columns, np.int32), device)
        self.first_chunk = upload(first, device)
        self.chunk_tensor = upload(np.repeat(np.arange(len(numels), dtype=np.int32), counts), device)
        self.chunk_index = upload(
            np.concatenate([np.arange(b - a, dtype=np.int32) for a, b in pairwise(first.tolist())]), device
        )
        self.gradient_sums = torch.empty((3, self.num_chunks), dtype=torch.float64, device=device)
        self.gradient_counts = torch.empty((2, self.num_chunks), dtype=torch.int32, device=device)
        self.parameter_sums = torch.empty((4, self.num_chunks), dtype=torch.float64, device=device)
        processors = torch.cuda.get_device_properties(device).multi_processor_count
        self.num_programs = min(self.num_chunks, processors * PROGRAMS_PER_PROCESSOR)


def measure_gradients(
    table: ChunkTable, gradients: AddressTable, threshold: torch.Tensor, results: torch.Tensor, warps: int = WARPS
) -> None:
    """Rows 0 to 4 of `results`: L2, largest magnitude, zero share, non-finite count, share below `threshold`."""
    _gradient_chunks[(table.num_programs,)](
        gradients.on_device, table.numels, table.chunk_tensor, table.chunk_index, threshold,
        table.gradient_sums, table.gradient_counts, table.num_chunks,
        DTYPE=table.dtype, WIDE=table.wide, ALIGNED=gradients.aligned, CHUNK=table.chunk, num_warps=warps,
    )  # fmt: skip
    _gradient_totals[(table.num_tensors,)](
        gradients.on_device, table.numels, table.first_chunk, table.columns,
        table.gradient_sums, table.gradient_counts, table.num_chunks, results, results.shape[1],
        BLOCK=TOTALS_BLOCK, num_warps=4,
    )  # fmt: skip


def measure_parameters(
    table: ChunkTable,
    parameters: AddressTable,
    copies: AddressTable | None,
    results: torch.Tensor,
    *,
    compare: bool,
    store: bool,
    warps: int = WARPS,
) -> None:
    """Rows 5 and 6 of `results`: L2 of the parameter and, with `compare`, of its difference from the copy; with `store`
    the copy is refreshed in the same pass."""
    held = parameters if copies is None else copies
    _parameter_chunks[(table.num_programs,)](
        parameters.on_device, held.on_device, table.numels, table.chunk_tensor, table.chunk_index,
        table.parameter_sums, table.num_chunks,
        DTYPE=table.dtype, WIDE=table.wide, ALIGNED=parameters.aligned and held.aligned, COMPARE=compare, STORE=store,
        CHUNK=table.chunk, num_warps=warps,
    )  # fmt: skip
    _parameter_totals[(table.num_tensors,)](
        parameters.on_device, table.first_chunk, table.columns,
        table.parameter_sums, table.num_chunks, results, results.shape[1],
        COMPARE=compare, BLOCK=TOTALS_BLOCK, num_warps=4,
    )  # fmt: skip


@triton.jit
def _square_scale(peak):
    # A power of two, so exact, under which squares of values up to `peak` stay inside float32. Infinity keeps 1, so
    # that it reaches the sum as infinity; NaN is in no range, keeps 1 too and reaches the sum as NaN.
    inside = tl.where(peak < 1e12, 1.0, tl.where(peak < float("inf"), 8.271806125530277e-25, 1.0))
    small = tl.where(peak < 1e-30, 1.329227995784916e36, 1.8446744073709552e19)
    return tl.where(peak < 1e-10, small, inside)


@triton.jit
def _gradient_chunks(
    addresses, numels, chunk_tensor, chunk_index, threshold_at, sums, counts, num_chunks,
    DTYPE: tl.constexpr, WIDE: tl.constexpr, ALIGNED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    offsets = tl.arange(0, CHUNK)
    threshold = tl.load(threshold_at)
    if not WIDE:
        threshold = threshold.to(tl.float32)
    for chunk in range(tl.program_id(0), num_chunks, tl.num_programs(0)):
        tensor = tl.load(chunk_tensor + chunk)
        address = tl.load(addresses + tensor)
        if address != 0:
            start = tl.load(chunk_index + chunk).to(tl.int64) * CHUNK
            left = tl.load(numels + tensor) - start
            values = address.to(tl.pointer_type(DTYPE)) + start
            if ALIGNED:
                values = tl.multiple_of(values, 16)
            # The mask of a last chunk forbids wide loads, so whole chunks go without one.
            if left >= CHUNK:
                x = tl.load(values + offsets)
            else:
                x = tl.load(values + offsets, mask=offsets < left, other=0.0)
            if not WIDE:
                x = x.to(tl.float32)
            size = tl.abs(x)
            peak = tl.max(size, axis=0)
            scale = _square_scale(peak)
            scaled = x * scale
            squares = tl.sum(scaled * scaled, axis=0)
            zero = (size == 0).to(tl.int32)
            nonfinite = 1 - (size < float("inf")).to(tl.int32)
            packed = tl.sum(zero + nonfinite * 65536, axis=0)
            below = tl.sum((size < threshold).to(tl.int32), axis=0)
            padding = tl.maximum(CHUNK - left, 0).to(tl.int32)  # read as zeros above
            tl.store(sums + chunk, squares.to(tl.float64))
            tl.store(sums + num_chunks + chunk, scale.to(tl.float64))
            tl.store(sums + 2 * num_chunks + chunk, peak.to(tl.float64))
            tl.store(counts + chunk, packed - padding)
            tl.store(counts + num_chunks + chunk, below - (packed & 65535))


@triton.jit
def _gradient_totals(
    addresses, numels, first_chunk, columns, sums, counts, num_chunks, results, width, BLOCK: tl.constexpr
):  # fmt: skip
    tensor = tl.program_id(0)
    out = results + tl.load(columns + tensor)
    if tl.load(addresses + tensor) == 0:
        for row in tl.static_range(5):
            tl.store(out + row * width, -1.0)
    else:
        total = tl.zeros([BLOCK], tl.float64)
        peak = tl.zeros([BLOCK], tl.float64)
        zeros = tl.zeros([BLOCK], tl.int64)
        nonfinite = tl.zeros([BLOCK], tl.int64)
        subnormal = tl.zeros([BLOCK], tl.int64)
        end = tl.load(first_chunk + tensor + 1)
        for at in range(tl.load(first_chunk + tensor), end, BLOCK):
            chunks = at + tl.arange(0, BLOCK)
            inside = chunks < end
            scale = tl.load(sums + num_chunks + chunks, mask=inside, other=1.0)
            total += tl.load(sums + chunks, mask=inside, other=0.0) / (scale * scale)
            peak = tl.maximum(peak, tl.load(sums + 2 * num_chunks + chunks, mask=inside, other=0.0))
            packed = tl.load(counts + chunks, mask=inside, other=0)
            zeros += (packed & 65535).to(tl.int64)
            nonfinite += (packed >> 16).to(tl.int64)
            subnormal += tl.load(counts + num_chunks + chunks, mask=inside, other=0).to(tl.int64)
        l2 = tl.sqrt(tl.sum(total, axis=0))
        numel = tl.load(numels + tensor).to(tl.float64)
        # Maxima leave NaN out, sums carry it.
        largest = tl.where(l2 == l2, tl.max(peak, axis=0), l2)
        tl.store(out, l2.to(tl.float32))
        tl.store(out + width, largest.to(tl.float32))
        tl.store(out + 2 * width, (tl.sum(zeros, axis=0).to(tl.float64) / numel).to(tl.float32))
        tl.store(out + 3 * width, tl.sum(nonfinite, axis=0).to(tl.float32))
        tl.store(out + 4 * width, (tl.sum(subnormal, axis=0).to(tl.float64) / numel).to(tl.float32))


@triton.jit
def _parameter_chunks(
    addresses, copies, numels, chunk_tensor, chunk_index, sums, num_chunks,
    DTYPE: tl.constexpr, WIDE: tl.constexpr, ALIGNED: tl.constexpr, COMPARE: tl.constexpr, STORE: tl.constexpr,
    CHUNK: tl.constexpr,
):  # fmt: skip
    offsets = tl.arange(0, CHUNK)
    for chunk in range(tl.program_id(0), num_chunks, tl.num_programs(0)):
        tensor = tl.load(chunk_tensor + chunk)
        address = tl.load(addresses + tensor)
        if address != 0:
            start = tl.load(chunk_index + chunk).to(tl.int64) * CHUNK
            left = tl.load(numels + tensor) - start
            values = address.to(tl.pointer_type(DTYPE)) + start
            held = tl.load(copies + tensor).to(tl.pointer_type(DTYPE)) + start
            if ALIGNED:
                values = tl.multiple_of(values, 16)
                held = tl.multiple_of(held, 16)
            if left >= CHUNK:
                x = tl.load(values + offsets)
                if COMPARE:
                    old = tl.load(held + offsets)
                else:
                    old = x
                if STORE:
                    tl.store(held + offsets, x)
            else:
                inside = offsets < left
                x = tl.load(values + offsets, mask=inside, other=0.0)
                if COMPARE:
                    old = tl.load(held + offsets, mask=inside, other=0.0)
                else:
                    old = x
                if STORE:
                    tl.store(held + offsets, x, mask=inside)
            if not WIDE:
                x = x.to(tl.float32)
                old = old.to(tl.float32)
            scale = _square_scale(tl.max(tl.abs(x), axis=0))
            scaled = x * scale
            tl.store(sums + chunk, tl.sum(scaled * scaled, axis=0).to(tl.float64))
            tl.store(sums + num_chunks + chunk, scale.to(tl.float64))
            if COMPARE:
                difference = x - old
                scale = _square_scale(tl.max(tl.abs(difference), axis=0))
                scaled = difference * scale
                tl.store(sums + 2 * num_chunks + chunk, tl.sum(scaled * scaled, axis=0).to(tl.float64))
                tl.store(sums + 3 * num_chunks + chunk, scale.to(tl.float64))


@triton.jit
def _parameter_totals(
    addresses, first_chunk, columns, sums, num_chunks, results, width, COMPARE: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
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
            scale = tl.load(sums + num_chunks + chunks, mask=inside, other=1.0)
            total += tl.load(sums + chunks, mask=inside, other=0.0) / (scale * scale)
            if COMPARE:
                scale = tl.load(sums + 3 * num_chunks + chunks, mask=inside, other=1.0)
                moved += tl.load(sums + 2 * num_chunks + chunks, mask=inside, other=0.0) / (scale * scale)
        tl.store(out, tl.sqrt(tl.sum(total, axis=0)).to(tl.float32))
        if COMPARE:
            tl.store(out + width, tl.sqrt(tl.sum(moved, axis=0)).to(tl.float32))
