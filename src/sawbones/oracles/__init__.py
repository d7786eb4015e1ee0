"""Exact references in float64 NumPy, to judge somebody else's loss, layer, optimizer or schedule
by.

Each is written for being right and readable, not fast. All take plain arrays (anything NumPy can
read), never change what they are given, and raise ShapeMismatch or ValueOutOfRange, both
SawbonesError, when an argument does not fit.

    losses      log-sum-exp, softmax, cross-entropy and its gradient
    mlp         the two-layer network, forward and backward
    norms       LayerNorm, BatchNorm, GroupNorm, RMSNorm
    attention   scaled dot-product attention and its masks
    positions   sinusoidal and rotary positions
    optimizers  one pure step function per update rule, global-norm clipping
    schedules   warm-up + cosine
    initial     Glorot and He variances
    gradcheck   central finite differences for any function
"""
