"""Whether the ranks of one training agree: what each of them fingerprints, and when.

On the first few steps and then on every N-th: parameters and buffers after the step, gradients as
the optimizer is given them, the batches since the last time, and the order of what happened. The
rank leaves them in its channel; what the channel finds becomes a fact of the run on every rank,
wherever its folder lies. No random number is drawn and nothing waits for a device.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.rank_channel import KEPT, NOTE_BYTES, Note, RankChannel, Single, Store
from sawbones.observe.shared_batch import SharedBatch
from sawbones.observe.signals.shards import sharded
from sawbones.observe.tensor_prints import Pending
from sawbones.schema import Batch
from sawbones.schema import ranks as kinds
from sawbones.store.codec import from_plain

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

FIRST = (1, 2, 3, 5, 10, 20)
# batches with a number below this, or divisible by it, are recorded on every rank however busy it
# is
_ALWAYS_KEPT = 20
_MASK = 2**64 - 1
_PRIME = 1_099_511_628_211
_MOST_PENDING = 4


class Agreement:
    """Of one process group, from the first step under it until it is destroyed."""

    def __init__(self, recorder: Recorder) -> None:
        self._r = recorder
        self._every = max(1, recorder.options.full_every)
        rank, world = distributed.get_rank(), distributed.get_world_size()
        store = distributed.distributed_c10d._get_default_store()
        self.channel = RankChannel(lambda: own_connection(store), rank, world)
        self._events = 0
        self._batches: int | None = None
        self._gradients: Pending | None = None
        self._waiting: list[
            tuple[int, int, dict[str, int], dict[str, list[str]], dict[str, Pending]]
        ] = []
        self._layout: tuple[tuple[int, ...], int] = ((), 0)
        self._buffers: list[torch.Tensor] = []
        self._buffers_sent = 0  # collectives of the script that hold buffers
        self._shared = SharedBatch(recorder) if recorder.options.journal else None
        self.channel.wants_batch = self._shared is not None
        recorder.batches.on_batch = self._batch

    def is_due(self, step: int) -> bool:
        return step in FIRST or step % self._every == 0

    def step_begins(self) -> None:
        """Gradients are complete."""
        if self._shared is not None and self._shared.is_open and not capturing():
            batch = self._shared.called()
            if batch is not None and self.channel.rank == 0:
                self.channel.offer(batch)
        if self.is_due(self._r.step + 1) and not capturing():
            names, params, _, _ = self._tensors()
            self._gradients = Pending([p.grad for p in params]) if names else None

    def step_ended(self, recorder: Recorder) -> None:
        self._deliver()
        if not self.is_due(recorder.step) or capturing():
            return
        names, params, buffer_names, buffers = self._tensors()
        pending: dict[str, Pending] = {}
        if names:
            pending["parameters"] = Pending(params)
            if self._gradients is not None:
                pending["gradients"] = self._gradients
        if buffers:
            pending["buffers"] = Pending(buffers)
        prints = {"events": self._events}
        if self._batches is not None:
            prints["batches"] = self._batches
        by_kind = {"parameters": names, "gradients": names, "buffers": buffer_names}
        asked = self._shared.ask(self.channel.shared) if self._shared is not None else None
        if asked is not None:
            by_kind["answers"], pending["answers"] = asked
        self._gradients = self._batches = None
        self._waiting.append((recorder.step, self._layout[1], prints, by_kind, pending))
        del self._waiting[:-_MOST_PENDING]
        self._deliver()

    def _deliver(self) -> None:
        """Hands on what has come home from the device, and takes over what the channel knows."""
        while self._waiting and all(p.done() for p in self._waiting[0][-1].values()):
            step, layout, prints, names, pending = self._waiting.pop(0)
            read = {kind: p.read() for kind, p in pending.items()}
            single = Single(step, {kind: names[kind] for kind in read}, read)
            self.channel.leave(
                Note(step, layout, {**prints, **{kind: p.folded() for kind, p in read.items()}}),
                single,
            )
        if self.channel.comparison.compared or self.channel.found:
            self.note()

    def note(self) -> None:
        known, channel = self.channel.comparison, self.channel
        same, compared = known.batches
        self._r.facts["agreement"] = kinds.Agreement(
            channel.rank,
            channel.world_size,
            self._every,
            known.compared,
            known.last,
            (same, compared),
            {kind: from_plain(kinds.Apart, row) for kind, row in dict(channel.found).items()},
            self._buffers_sent,
            KEPT * NOTE_BYTES,
            known.asked,
        )

    def close(self) -> None:
        self._r.batches.on_batch = None
        self.channel.close()
        self.note()

    def _tensors(self) -> tuple[list[str], list[torch.Tensor], list[str], list[torch.Tensor]]:
        """Names and tensors that every rank must hold the same of. Of a sharded model that is none
        of its parameters.
        """
        census = self._r.census
        named = (
            {}
            if sharded(self._r)
            else {id(p): (name, p) for name, p, _ in reversed(list(census.named()))}
        )
        params = list(named.values())[::-1]
        roots = census.roots()
        saved = {
            id(b)
            for root in roots
            for m in root.modules()
            for n, b in m._buffers.items()
            if n not in m._non_persistent_buffers_set
        }
        buffers = [
            (n, b)
            for root in roots
            for n, b in root.named_buffers()
            if id(b) in saved and not hasattr(b, "placements")
        ]
        self._buffers = [b for _, b in buffers]
        key = (*(id(p) for _, p in params), *(id(b) for _, b in buffers))
        if key != self._layout[0]:
            text = repr([(n, tuple(t.shape), str(t.dtype)) for n, t in (*params, *buffers)])
            self._layout = (
                key,
                int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"),
            )
        return (
            [n for n, _ in params],
            [p for _, p in params],
            [n for n, _ in buffers],
            [b for _, b in buffers],
        )

    def saw(self, what: str, shape: Any = None, given: tuple[Any, ...] = ()) -> None:
        """A backward pass, a step, or a collective of all ranks with its arguments."""
        self._events = (self._events * _PRIME + zlib.crc32(f"{what} {shape}".encode())) & _MASK
        if given and self._buffers:
            self._buffers_sent += self._holds_buffers(given)

    def _holds_buffers(self, given: tuple[Any, ...]) -> bool:
        """A buffer itself, all of them in one piece, or objects, which may hold anything."""
        found = [tensor for _, tensor in tensors_in(given)]
        if not found:
            return any(isinstance(value, (list, dict)) for value in given)
        places = {b.data_ptr() for b in self._buffers}
        floats = sum(b.numel() for b in self._buffers if b.is_floating_point())
        return any(t.data_ptr() in places or t.numel() == floats for t in found)

    def _batch(self, index: int, batch: Batch) -> None:
        if (
            batch.phase == "train"
            and batch.fingerprints
            and (index < _ALWAYS_KEPT or index % _ALWAYS_KEPT == 0)
        ):
            self._batches = ((self._batches or 0) * _PRIME + sum(batch.fingerprints)) & _MASK


def own_connection(store: Any) -> Store:
    """A connection beside the one that torch uses: a call that waits on that one would make ours
    wait, and the other way round.
    """
    if hasattr(store, "clone"):
        copy: Store = store.clone()
        return copy
    stores: Any = distributed  # its distributed_c10d has no TCPStore in torch 2.6
    inner = store
    while isinstance(inner, stores.PrefixStore):
        inner = inner.underlying_store
    if not isinstance(inner, stores.TCPStore):
        raise NotImplementedError(f"no second connection to a {type(inner).__name__}")
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    beside = stores.TCPStore(inner.host, inner.port, is_master=False, wait_for_workers=False)
    prefixed: Store = stores.PrefixStore(f"attempt{attempt}", beside)
    return prefixed


def capturing() -> bool:
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
