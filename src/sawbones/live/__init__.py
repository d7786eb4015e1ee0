"""While the training goes on: what was found is said, passed on, and ends the run where asked."""

from sawbones.live.alerts import Alerts
from sawbones.live.looking import attach_live_warnings
from sawbones.live.stopping import StopOn

__all__ = ["Alerts", "StopOn", "attach_live_warnings"]
