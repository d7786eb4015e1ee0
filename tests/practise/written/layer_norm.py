import numpy as np


def layer_norm(x, weight, bias, upstream, eps):
    width = x.shape[-1]
    centred = x - x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).sum(-1, keepdims=True) / width + eps)
    normal = centred * inverse
    dn = upstream * weight
    total, along = dn.sum(-1, keepdims=True), (dn * normal).sum(-1, keepdims=True)
    return {
        "output": normal * weight + bias,
        "bias": upstream.sum((0, 1)),
        "weight": (upstream * normal).sum((0, 1)),
        "x": inverse / width * (width * dn - total - normal * along),
    }
