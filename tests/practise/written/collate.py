import numpy as np


def collate(samples, pad_id):
    longest = max(len(s) - 1 for s in samples)
    inputs = np.full((len(samples), longest), pad_id)
    labels = np.full((len(samples), longest), -100)
    for i, s in enumerate(samples):
        inputs[i, : len(s) - 1] = s[:-1]
        labels[i, : len(s) - 1] = s[1:]
    lengths = np.array([len(s) - 1 for s in samples])
    return {"inputs": inputs, "mask": np.arange(longest) < lengths[:, None], "labels": labels}
