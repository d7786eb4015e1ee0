"""What a value that is not finite stands for, a person decides."""

from __future__ import annotations

from sawbones.fixing.recipes import left_to_a_person

fix = left_to_a_person(
    "Decide what the value stands for: a missing measurement (fill in the mean of the training rows "
    "and add a column that says so), a row that is no use (drop it; rows are lost), or a mistake "
    "on the way (mend it there; torch.nan_to_num would hide it)."
)
