"""The operator vocabulary: kinds of operators, by the names that a trace gives them."""

from __future__ import annotations

# How else a call may be written -> the name that a trace gives it.
_ALIASES = {
    "__rsub__": "rsub",
    "__rdiv__": "rdiv",
    "__rpow__": "rpow",
    "__radd__": "add",
    "__rmul__": "mul",
    "__add__": "add",
    "__mul__": "mul",
    "__sub__": "sub",
    "__matmul__": "matmul",
    "__rmatmul__": "matmul",
    "__neg__": "neg",
    "negative": "neg",
    "__truediv__": "div",
    "true_divide": "div",
    "divide": "div",
    "__rtruediv__": "rdiv",
    "__pow__": "pow",
    "multiply": "mul",
    "subtract": "sub",
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__idiv__": "div_",
    "__and__": "logical_and",
    "__or__": "logical_or",
    "__iand__": "logical_and",
    "__ior__": "logical_or",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "__invert__": "bitwise_not",
    "special_logsumexp": "logsumexp",
    "special_expit": "sigmoid",
    "special_softmax": "softmax",
    "special_log_softmax": "log_softmax",
    "absolute": "abs",
    "__abs__": "abs",
    "concat": "cat",
    "concatenate": "cat",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "__eq__": "eq",
    "__ne__": "ne",
    "__gt__": "gt",
    "__lt__": "lt",
    "__ge__": "ge",
    "__le__": "le",
    "clip": "clamp",
    "clip_": "clamp_",
    "_masked_softmax": "softmax",
    "float_power": "pow",
    "power": "pow",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
}


def normal(name: str) -> str:
    return _ALIASES.get(name, name)


def spellings(name: str) -> list[str]:
    """All names of functions that a trace gives this name."""
    return [name, *(other for other, same in _ALIASES.items() if same == name)]


# They hand on the same values in another shape, order or type.
RESHAPING = frozenset(
    {
        "view",
        "reshape",
        "transpose",
        "permute",
        "t",
        "T",
        "mT",
        "contiguous",
        "squeeze",
        "unsqueeze",
        "flatten",
        "unflatten",
        "expand",
        "expand_as",
        "view_as",
        "clone",
        "to",
        "float",
        "double",
        "half",
        "bfloat16",
        "long",
        "int",
        "type",
        "type_as",
        "movedim",
        "detach",
        "data",
        "reshape_as",
        "squeeze_",
        "unsqueeze_",
        "cpu",
        "cuda",
        "ravel",
        "alias",
        "requires_grad_",
        "broadcast_to",
        "rearrange",
        "bool",
        "as_tensor",
        "resolve_neg",
        "resolve_conj",
        "asarray",
        "pin_memory",
        "contiguous_",
    }
)
# They hand on a part of the values.
SLICING = frozenset(
    {
        "__getitem__",
        "narrow",
        "select",
        "unbind",
        "chunk",
        "split",
        "index_select",
        "masked_select",
        "tensor_split",
        "split_with_sizes",
        "narrow_copy",
    }
)
PASSING = RESHAPING | SLICING
FORMING = PASSING | {"dropout"}
# They take every element by itself.
ELEMENTWISE = frozenset(
    (
        "abs add add_ alias bfloat16 binary_cross_entropy binary_cross_entropy_with_logits "
        "clamp clamp_ clamp_max clamp_min clone contiguous cos detach div div_ double elu exp "
        "expm1 float ge gt half huber_loss l1_loss le leaky_relu log log1p logsigmoid lt "
        "maximum minimum mse_loss mul mul_ nan_to_num neg poisson_nll_loss pow rdiv "
        "reciprocal relu rsqrt rsub sigmoid sign silu sin smooth_l1_loss soft_margin_loss "
        "softplus sqrt square squeeze sub sub_ tanh to type_as where xlogy"
    ).split()
)
DOT_PRODUCTS = frozenset(
    {"matmul", "bmm", "einsum", "baddbmm", "mm", "linear", "addmm", "mv", "dot", "tensordot"}
)

# Outputs against targets, row by row: smaller is better.
AGAINST_TARGETS = frozenset(
    {
        "cross_entropy",
        "nll_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
    }
)
LOSSES = AGAINST_TARGETS | frozenset(
    {
        "kl_div",
        "gaussian_nll_loss",
        "poisson_nll_loss",
        "cosine_embedding_loss",
        "triplet_margin_loss",
        "triplet_margin_with_distance_loss",
        "margin_ranking_loss",
        "multi_margin_loss",
        "multilabel_margin_loss",
        "multilabel_soft_margin_loss",
        "hinge_embedding_loss",
        "soft_margin_loss",
        "ctc_loss",
        "linear_cross_entropy",
    }
)
