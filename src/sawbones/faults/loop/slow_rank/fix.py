"""Whether the machine or the code of one rank is slow, a person has to find out and decide."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide after one swap of the ranks between machines. The slow rank moves along: replace or "
    "unload that machine (the job is smaller by one until then). Its number stays: share out what "
    "only this rank does, or do it every N-th step (its records get coarser)."
)
