"""Deep steps: the operators of one step, the values that met in them, and what depends on what."""

from sawbones.observe.deep.observer import DeepObserver
from sawbones.observe.deep.originals import Originals

__all__ = ["DeepObserver", "Originals"]
