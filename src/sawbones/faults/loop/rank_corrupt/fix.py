"""Which of two ranks is wrong, a person has to find out."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide which rank to trust: run the script alone on each of the two machines from one seed, "
    "and compare both with a third. Leave the one that differs out until its device is tested (the "
    "job is smaller by one), or bring its versions and precision settings in line with the others. "
    "Checkpoints since the first difference hold its gradients."
)
