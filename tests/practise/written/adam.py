import numpy as np


def adam(parameter, gradients, lr, beta1, beta2, eps, weight_decay):
    p = np.array(parameter)
    m = np.zeros_like(p)
    v = np.zeros_like(p)
    for t, gradient in enumerate(gradients, 1):
        g = gradient + weight_decay * p
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        p = p - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return {"mean": m, "square": v, "parameter": p}
