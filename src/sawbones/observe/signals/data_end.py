"""The signals on data and pipeline, written once when a diagnosed run has ended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from sawbones.observe.signals.calls import user_calls, user_numbers
from sawbones.observe.signals.label_probe import probe_dataset
from sawbones.observe.signals.map_partners import probe_partners
from sawbones.observe.signals.paired_before import paired_before
from sawbones.observe.signals.redraw import probe_redraw
from sawbones.observe.signals.source_files import user_files
from sawbones.observe.signals.source_lines import user_lines
from sawbones.observe.sites import is_user_file
from sawbones.schema.labels import LabelProbe
from sawbones.schema.one_off import DataCode

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def write_signals_of_the_end(recorder: Recorder) -> None:
    """Signals that a diagnosed run gives once training is over."""
    files = user_files(recorder.sites)
    recorder.facts["source_calls"] = user_calls(recorder.sites, files)
    recorder.facts["source_numbers"] = user_numbers(recorder.sites, files)
    found = recorder.guard("source lines", user_lines, recorder.sites, files)
    recorder.facts["source_lines"] = found or ()
    recorder.facts["streams_used"] = recorder.streams_used()
    if recorder.journal is not None:
        recorder.facts["index_writes"] = recorder.journal.index_writes.record()
    if recorder.norm_copies is not None:
        recorder.facts["norm_copies"] = recorder.norm_copies.record()
    # Before the data set is read here: what workers would draw is asked of it as they got it.
    write_data_signals(recorder)
    dataset = recorder.batches.training_dataset()
    log = recorder.sources.log if recorder.sources is not None else None
    found = LabelProbe(
        recorder.pairs.probe() if recorder.pairs else None,
        probe_dataset(dataset) if dataset is not None else None,
        probe_partners(dataset) if dataset is not None else None,
        recorder.guard("paired before", paired_before, log.versions, recorder.pairs)
        if log is not None and recorder.pairs is not None
        else None,
    )
    if found != LabelProbe():
        recorder.writer.record("label_probe", 0, found)


def write_data_signals(recorder: Recorder) -> None:
    """Each on its own: one that fails leaves the others standing."""
    if recorder.samples is not None:
        found = recorder.guard("samples", recorder.samples.record)
        if found:
            recorder.writer.record("samples", 0, found)
    if recorder.vocabularies is not None:
        found = recorder.guard("vocabularies", recorder.vocabularies.record)
        if found:
            recorder.writer.record("vocabularies", 0, found)
    if recorder.fitted is not None:
        found = recorder.guard("fitted", recorder.fitted.record)
        if found:
            recorder.facts["fitted"] = found
    recorder.facts["metric_libraries"] = [
        name for name in ("sklearn.metrics", "torchmetrics") if name in sys.modules
    ]
    loader = recorder.batches.training_loader()
    if loader is not None:
        dataset, init, num_workers = loader
        recorder.facts["data_code"] = DataCode(
            _defined(recorder, getattr(type(dataset), "__getitem__", None))
            or _defined(recorder, getattr(type(dataset), "__iter__", None)),
            _defined(recorder, getattr(type(dataset), "__init__", None)),
            _defined(recorder, init),
        )
        found = recorder.guard("redraw", probe_redraw, dataset, init, num_workers)
        if found:
            recorder.writer.record("redraw", 0, found)


def _defined(recorder: Recorder, function: Any) -> tuple[str, int, int] | None:
    """(file, first line, last line) of a function of the user's own."""
    function = getattr(function, "func", function)
    code = getattr(function, "__code__", None)
    if code is None or not is_user_file(code.co_filename):
        return None
    last = max(
        (line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno
    )
    return recorder.sites.shown(code.co_filename), code.co_firstlineno, last
