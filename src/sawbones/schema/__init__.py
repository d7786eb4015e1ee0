"""The nouns: frozen records that every stage reads and writes."""

from sawbones.schema.deep import (
    Activation,
    Attention,
    DeepStep,
    Influence,
    LossCall,
    Op,
    TokenInput,
    Value,
)
from sawbones.schema.event import EVENT_KINDS, Event
from sawbones.schema.faults import LAYERS, Fault, fault, faults
from sawbones.schema.finding import CouldNotLook, Evidence, Finding, Fix, Report, Verdict
from sawbones.schema.run import (
    NO_GRADIENT,
    NOT_MEASURED,
    STEP_COLUMNS,
    TENSOR_STATISTICS,
    Batch,
    Ending,
    Module,
    Optimizer,
    Run,
    Tensor,
)
from sawbones.schema.site import Site

__all__ = [
    "EVENT_KINDS",
    "LAYERS",
    "NOT_MEASURED",
    "NO_GRADIENT",
    "STEP_COLUMNS",
    "TENSOR_STATISTICS",
    "Activation",
    "Attention",
    "Batch",
    "CouldNotLook",
    "DeepStep",
    "Ending",
    "Event",
    "Evidence",
    "Fault",
    "Finding",
    "Fix",
    "Influence",
    "LossCall",
    "Module",
    "Op",
    "Optimizer",
    "Report",
    "Run",
    "Site",
    "Tensor",
    "TokenInput",
    "Value",
    "Verdict",
    "fault",
    "faults",
]
