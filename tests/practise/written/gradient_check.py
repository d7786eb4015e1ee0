import numpy as np


def check_gradient(function, gradient, x):
    width = 1e-5
    numeric = np.empty_like(x)
    for i in range(len(x)):
        step = np.zeros_like(x)
        step[i] = width
        numeric[i] = (function(x + step) - function(x - step)) / (2 * width)
    scale = np.maximum(np.maximum(abs(gradient), abs(numeric)), 1e-8)
    return {"numeric": numeric, "error": float((abs(gradient - numeric) / scale).max())}
