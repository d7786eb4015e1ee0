import numpy as np


def mlp_gradients(x, w1, b1, w2, b2, upstream):
    z = x @ w1 + b1
    a = np.maximum(z, 0)
    da = upstream @ w2.T
    dz = np.where(z > 0, da, 0.0)
    return {
        "y": a @ w2 + b2,
        "w2": a.T @ upstream,
        "b2": upstream.sum(0),
        "a": da,
        "z": dz,
        "w1": x.T @ dz,
        "b1": dz.sum(0),
        "x": dz @ w1.T,
    }
