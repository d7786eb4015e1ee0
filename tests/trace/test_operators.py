"""One name for every way of writing an operator."""

from __future__ import annotations

import torch

from sawbones.observe.deep.names import name_of
from sawbones.trace.operators import PASSING, normal, spellings


def test_every_way_of_writing_a_division_has_one_name():
    assert {normal(n) for n in ("div", "__truediv__", "true_divide", "divide")} == {"div"}
    assert set(spellings("div")) >= {"div", "__truediv__", "true_divide", "divide"}


def test_what_has_no_other_name_keeps_its_own():
    assert normal("softmax") == "softmax"
    assert spellings("relu") == ["relu"]


def test_the_deep_trace_gives_the_same_names():
    assert name_of(torch.true_divide) == normal("true_divide") == "div"
    assert name_of(torch.Tensor.__eq__) == normal("__eq__") == "eq"


def test_no_list_holds_a_word_that_a_trace_never_gives():
    assert {normal(name) for name in PASSING} == PASSING
