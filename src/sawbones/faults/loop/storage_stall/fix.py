"""How often the loop has to write, and where to, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide how much may be lost when the run dies. Writing every N-th step costs up to N steps of "
    "records; a thread or a queue in between costs those that it still holds; a local disk that is "
    "copied later costs nothing while the machine lives. fsync belongs to checkpoints only."
)
