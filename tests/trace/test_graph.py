"""The operator graph on small hand-made steps: who made a value, what is behind it, what follows."""

from __future__ import annotations

from sawbones.schema import DeepStep, Op, Value
from sawbones.trace.graph import StepGraph


def _value(number: int) -> Value:
    return Value(number, (2, 3), "float32", requires_grad=True)


def _op(index: int, name: str, inputs: tuple[int, ...], output: int, **args: object) -> Op:
    given = tuple(_value(n) for n in inputs)
    return Op(index, name, None, "", given, (_value(output),), args)


def _step(*ops: Op) -> DeepStep:
    return DeepStep(0, 0, ops=ops)


# x(1) -> linear with w(2) -> y(3) -> view -> y'(4) -> softmax -> p(5); y is added to p: z(6)
STEP = _step(
    _op(0, "linear", (1, 2), 3),
    _op(1, "view", (3,), 4),
    _op(2, "softmax", (4,), 5),
    _op(3, "add", (5, 3), 6),
)


def test_a_value_is_followed_back_through_what_only_hands_it_on():
    value, op = StepGraph(STEP).origin(_value(4))
    assert (value.id, op.name) == (3, "linear")


def test_a_value_from_outside_has_no_maker():
    assert StepGraph(STEP).origin(_value(1)) == (_value(1), None)
    assert [v.id for v in StepGraph(STEP).sources(_value(6))] == [1, 2]
    assert [v.id for v in StepGraph(STEP).sources(_value(1))] == [1]


def test_operators_behind_a_value_come_nearest_first_and_once():
    assert [op.name for op in StepGraph(STEP).behind(_value(6))] == [
        "add",
        "softmax",
        "linear",
        "view",
    ]
    assert [op.name for op in StepGraph(STEP).behind(_value(6), limit=2)] == ["add", "softmax"]


def test_only_inputs_that_are_followed_are_gone_behind():
    first = StepGraph(STEP).behind(_value(6), follow=lambda op: op.inputs[:1])
    assert [op.name for op in first] == ["add", "softmax", "view", "linear"]


def test_what_depends_on_a_value_is_everything_after_it():
    graph = StepGraph(STEP)
    assert [op.name for op in graph.after([_value(4)])] == ["softmax", "add"]
    assert graph.reached([_value(4)]) == {4, 5, 6}


def test_who_made_a_value_depends_on_the_place_that_asks():
    graph = StepGraph(
        _step(_op(0, "zeros", (), 1), _op(1, "mul", (1,), 2), _op(2, "fill_", (1,), 1))
    )
    assert graph.maker(_value(1), 1).name == "zeros"
    assert graph.maker(_value(1)).name == "fill_"
    assert [op.name for op in graph.writers(_value(1))] == ["zeros", "fill_"]


def test_a_value_that_is_written_from_itself_does_not_lead_in_circles():
    graph = StepGraph(
        _step(_op(0, "zeros", (), 1), _op(1, "add_", (1,), 1), _op(2, "add_", (1,), 1))
    )
    assert [op.index for op in graph.behind(_value(1))] == [2, 1, 0]
    assert len(list(graph.way(_value(1)))) == 3


def test_what_ran_without_gradients_is_left_out_unless_asked_for():
    deep = _step(_op(0, "tril", (), 1, no_grad=True), _op(1, "mul", (1,), 2))
    assert StepGraph(deep).maker(_value(1)) is None
    assert StepGraph(deep, with_no_grad=True).maker(_value(1)).name == "tril"
