"""A small classifier. The argument names what is wrong with it: python classifier.py
no_zero_grad
"""

import os
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

fault = sys.argv[1] if len(sys.argv) > 1 else "none"
if fault != "unseeded":
    torch.manual_seed(0)

features = torch.randn(512, 20)
labels = (features @ torch.randn(20, 5)).argmax(1)
if fault == "labels_random":
    labels = labels[torch.randperm(512)]
loader = DataLoader(TensorDataset(features, labels), batch_size=32, shuffle=fault != "bad_batch")

dropout = {
    "dropout_heavy": 0.95,
    "train_in_eval": 0.5,
    "eval_in_train": 0.5,
    "modes_right": 0.5,
}.get(fault, 0.0)
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 5))
lr = {"lr_high": 8.0, "lr_low": 0.005, "lr_none": 1e-7}.get(fault, 0.5)
optimizer = torch.optim.SGD(
    model.parameters(), lr=lr, weight_decay=0.1 if fault == "decay_heavy" else 1e-4
)
if fault == "eps_large":
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, eps=10.0)

if fault == "train_in_eval":
    model.eval()
step = 0
for _ in range(4):
    for x, y in loader:
        if fault == "bad_batch" and step == 20:
            x = x * 300
        logits = model(x * 0 if fault == "input_ignored" else x)
        if fault == "double_softmax":
            logits = torch.softmax(logits, dim=1)
        if fault == "shares_as_scores":
            logits = torch.log_softmax(logits, dim=1).exp()
        if fault == "double_sigmoid":
            loss = F.binary_cross_entropy_with_logits(
                torch.sigmoid(logits), F.one_hot(y, 5).float()
            )
        elif fault == "single_sigmoid":
            loss = F.binary_cross_entropy_with_logits(logits, F.one_hot(y, 5).float())
        elif fault == "log_of_zero":
            loss = (
                -(torch.log(torch.softmax(logits * 60, dim=1)) * F.one_hot(y, 5)).sum(1).mean() / 60
            )
        else:
            loss = F.cross_entropy(logits, y, reduction="sum" if fault == "sum" else "mean")
        if fault == "exploding" and step % 8 == 5:
            loss = loss * 500
        if fault == "kernel" and not torch.are_deterministic_algorithms_enabled():
            loss = loss * (1 + 1e-6 * int.from_bytes(os.urandom(1), "big"))
        if fault != "no_zero_grad":
            optimizer.zero_grad()
        if fault == "maximised":
            loss = -loss
        loss.backward()
        optimizer.step()
        step += 1

if fault != "eval_in_train":
    model.eval()
with torch.no_grad():
    accuracy = (model(features).argmax(1) == labels).float().mean()
print(f"accuracy {accuracy:.2f}")
