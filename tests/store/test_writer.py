"""The writer of a recording: nothing that was handed to it is lost."""

from __future__ import annotations

from pathlib import Path

from sawbones.schema import Site
from sawbones.store import RunWriter, read_run


class Interrupting(Site):
    """Looked up while an event is put together; the writer's thread gets its turn there."""

    writer: RunWriter | None = None

    def __hash__(self) -> int:
        if Interrupting.writer is not None:
            Interrupting.writer.flush()
        return hash((self.file, self.line))


def test_an_event_that_is_put_together_during_a_flush_is_kept(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    Interrupting.writer = writer
    writer.meta("argv", ["train.py"])
    for number in range(3):
        site = Interrupting("train.py", number + 1)
        writer.event(number + 1, "backward", number, 0, "train", 0.0, site, {})
        writer.meta("seconds", number)
    Interrupting.writer = None
    writer.close()
    kept = [
        (event.seq, event.site and event.site.line) for event in read_run(tmp_path / "run").events
    ]
    assert kept == [(1, 1), (2, 2), (3, 3)]
