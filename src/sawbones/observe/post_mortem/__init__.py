"""A traceback -> schema.Crash, once, when the script has died. Costs nothing before."""

from sawbones.observe.post_mortem.record import crash_record

__all__ = ["crash_record"]
