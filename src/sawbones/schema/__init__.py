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
from sawbones.schema.finding import (
    VERDICTS,
    Cleared,
    CouldNotLook,
    CouldNotSee,
    Evidence,
    Finding,
    Fix,
    Report,
    Symptom,
    Verdict,
)
from sawbones.schema.loader import Loader
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
from sawbones.schema.source import MadeTensors, SourceCall, SourceLine, SourceNumber

__all__ = [
    "EVENT_KINDS",
    "LAYERS",
    "NOT_MEASURED",
    "NO_GRADIENT",
    "STEP_COLUMNS",
    "TENSOR_STATISTICS",
    "VERDICTS",
    "Activation",
    "Attention",
    "Batch",
    "Cleared",
    "CouldNotLook",
    "CouldNotSee",
    "DeepStep",
    "Ending",
    "Event",
    "Evidence",
    "Fault",
    "Finding",
    "Fix",
    "Influence",
    "Loader",
    "LossCall",
    "MadeTensors",
    "Module",
    "Op",
    "Optimizer",
    "Report",
    "Run",
    "Site",
    "SourceCall",
    "SourceLine",
    "SourceNumber",
    "Symptom",
    "Tensor",
    "TokenInput",
    "Value",
    "Verdict",
    "fault",
    "faults",
]
