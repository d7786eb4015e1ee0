"""The operator vocabulary: kinds of operators, by the names that a trace gives them."""

from __future__ import annotations

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
DOT_PRODUCTS = frozenset(
    {"matmul", "bmm", "einsum", "baddbmm", "mm", "linear", "addmm", "mv", "dot", "tensordot"}
)

LOSSES = frozenset(
    {
        "cross_entropy",
        "nll_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
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
