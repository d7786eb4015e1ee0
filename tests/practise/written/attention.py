import numpy as np


def attention(queries, keys, values, lengths, causal):
    scores = np.einsum("bhqd,bhkd->bhqk", queries, keys) / np.sqrt(queries.shape[-1])
    places = np.arange(keys.shape[2])
    seen = (places < lengths[:, None])[:, None, None, :]
    if causal:
        seen = seen & (places[None, :] <= np.arange(queries.shape[2])[:, None])
    scores = np.where(seen, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    weights = powers / powers.sum(-1, keepdims=True)
    return {"weights": weights, "output": weights @ values}
