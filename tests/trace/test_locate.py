"""From what was seen to lines: whatever knows its line will do, and each line is named once."""

from __future__ import annotations

from sawbones.schema import Event, Loader, Module, Op, Site
from sawbones.trace.locate import locate

BUILT, COLLATE, CALLED = Site("train.py", 3), Site("train.py", 9), Site("train.py", 20)


def test_operators_events_and_lines_are_located_in_the_order_given():
    op = Op(0, "softmax", CALLED, "", (), ())
    event = Event(0, "backward", 0, 0, "train", 0.0, BUILT)
    assert locate(event, None, op, COLLATE) == (BUILT, CALLED, COLLATE)


def test_a_line_that_two_subjects_share_is_named_once():
    again = Site("train.py", 20, "forward", "x = f(x)")
    assert locate(CALLED, again, BUILT) == (CALLED, BUILT)


def test_a_loader_is_where_it_was_built_and_then_its_collate_function():
    assert locate(Loader(0, site=BUILT, collate_site=COLLATE)) == (BUILT, COLLATE)


def test_a_module_is_where_it_was_built_not_where_its_class_is_defined():
    assert locate(Module("net", "Net", {}, 1, 1, site=CALLED, built=BUILT)) == (BUILT,)


def test_what_has_no_line_is_passed_over():
    assert locate(Op(0, "softmax", None, "", (), ()), Loader(0)) == ()
