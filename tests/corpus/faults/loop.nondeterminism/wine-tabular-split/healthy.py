#!/usr/bin/env python
# coding: utf-8

# In[1]:

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(0)

# In[2]:

wine = load_wine()
X_train, X_test, y_train, y_test = train_test_split(wine.data, wine.target, test_size=0.25, stratify=wine.target, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train = torch.tensor(scaler.transform(X_train), dtype=torch.float32)
X_test = torch.tensor(scaler.transform(X_test), dtype=torch.float32)
y_train = torch.tensor(y_train)
y_test = torch.tensor(y_test)
print(X_train.shape, X_test.shape, np.bincount(y_train))

# In[3]:


class WineNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(13, 24)
        self.fc2 = nn.Linear(24, 3)
        self.act = nn.ReLU()
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        return self.fc2(self.drop(self.act(self.fc1(x))))


net = WineNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

# In[4]:

batch_size = 19
train_losses, test_accs = [], []
for epoch in range(12):
    net.train()
    perm = torch.randperm(len(X_train))
    for i in range(0, len(perm), batch_size):
        idx = perm[i : i + batch_size]
        optimizer.zero_grad()
        loss = criterion(net(X_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
        train_losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        test_accs.append((net(X_test).argmax(1) == y_test).float().mean().item())

# In[5]:

print("first losses", [round(v, 3) for v in train_losses[:5]])
print("last losses", [round(v, 3) for v in train_losses[-5:]])
print("test accuracy per epoch", [round(v, 3) for v in test_accs])
