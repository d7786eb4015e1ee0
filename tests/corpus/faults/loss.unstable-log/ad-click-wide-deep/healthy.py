# ---
# # Click model: wide & deep on impressions log
# ---

# In[1]:
import numpy as np
import pandas as pd
import torch
from torch import nn

torch.manual_seed(99)
np.random.seed(99)

# In[2]: a day of impressions
N = 6000
log = pd.DataFrame({
    "ad": np.random.randint(0, 40, N),
    "site": np.random.randint(0, 25, N),
    "hour": np.random.randint(0, 24, N),
    "age": np.random.gamma(9.0, 4.0, N),
    "bid": np.random.lognormal(0.0, 0.6, N),
})
ad_quality = np.random.randn(40)
site_quality = np.random.randn(25)
signal = 2.0 * ad_quality[log.ad] + 1.5 * site_quality[log.site] + 1.5 * np.log(log.bid) - 0.5
log["click"] = (signal > 0).astype(np.float32)

# In[3]: features
numeric = log[["age", "bid"]].assign(bid=np.log(log.bid), evening=(log.hour > 17).astype(float))
numeric = (numeric - numeric.mean()) / numeric.std()
cut = 5000
columns = {
    "ad": torch.tensor(log.ad.values), "site": torch.tensor(log.site.values),
    "numeric": torch.tensor(numeric.values, dtype=torch.float32), "click": torch.tensor(log.click.values),
}
train = {k: v[:cut] for k, v in columns.items()}
test = {k: v[cut:] for k, v in columns.items()}


# In[4]: model
class WideAndDeep(nn.Module):
    def __init__(self, n_ads, n_sites, n_numeric, dim=16):
        super().__init__()
        self.wide_ad = nn.Embedding(n_ads, 1)
        self.wide_site = nn.Embedding(n_sites, 1)
        self.ad = nn.Embedding(n_ads, dim)
        self.site = nn.Embedding(n_sites, dim)
        self.deep = nn.Sequential(
            nn.Linear(2 * dim + n_numeric, 64), nn.ReLU(),
            nn.Linear(64, 32), nn.ReLU(),
            nn.Linear(32, 1),
        )
        for table in (self.wide_ad, self.wide_site):
            nn.init.normal_(table.weight, std=0.05)

    def forward(self, ad, site, numeric):
        deep = self.deep(torch.cat([self.ad(ad), self.site(site), numeric], dim=1))
        return (deep + self.wide_ad(ad) + self.wide_site(site)).squeeze(1)


def log_loss(logits, click):
    p = torch.sigmoid(logits).clamp(1e-6, 1 - 1e-6)
    return -(click * torch.log(p) + (1 - click) * torch.log(1 - p)).mean()


# In[5]: training
model = WideAndDeep(40, 25, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
history = []
for epoch in range(6):
    model.train()
    order = torch.randperm(cut)
    for start in range(0, cut - 127, 128):
        rows = order[start:start + 128]
        optimizer.zero_grad()
        loss = log_loss(model(train["ad"][rows], train["site"][rows], train["numeric"][rows]), train["click"][rows])
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits = model(test["ad"], test["site"], test["numeric"])
        acc = ((logits > 0).float() == test["click"]).float().mean().item()
    print(f"epoch {epoch}: log loss {np.mean(history[-39:]):.4f}, test accuracy {acc:.4f}, max logit {logits.abs().max():.1f}")
