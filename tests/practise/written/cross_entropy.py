import numpy as np


def cross_entropy(logits, targets, ignore_index):
    shifted = logits - logits.max(1, keepdims=True)
    log_total = np.log(np.exp(shifted).sum(1, keepdims=True))
    log_p = shifted - log_total
    kept = targets != ignore_index
    rows = np.flatnonzero(kept)
    gradient = np.zeros_like(logits)
    gradient[rows] = np.exp(log_p[rows])
    gradient[rows, targets[rows]] -= 1
    return {
        "probabilities": np.exp(log_p),
        "loss": -log_p[rows, targets[rows]].mean(),
        "gradient": gradient / len(rows),
    }
