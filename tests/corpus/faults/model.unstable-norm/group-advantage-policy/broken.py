# Group-relative policy optimisation on a toy "write the digits in order" task.
# %%
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 3
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

VOCAB, PROMPT_LEN, ANSWER_LEN = 8, 4, 4
GROUP, PROMPTS = 8, 24
ITERATIONS, INNER_EPOCHS, CLIP = 90, 1, 0.2


# %%
class Policy(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, hidden)
        self.encoder = nn.GRU(hidden, hidden, batch_first=True)
        self.cell = nn.GRUCell(hidden, hidden)
        self.head = nn.Linear(hidden, VOCAB)
        self.slot = nn.Embedding(ANSWER_LEN, hidden)

    def encode(self, prompt):
        _, h = self.encoder(self.embed(prompt))
        return h.squeeze(0)

    def rollout(self, prompt):
        h, answer = self.encode(prompt), []
        token = prompt[:, -1]
        for i in range(ANSWER_LEN):
            h = self.cell(self.embed(token) + self.slot.weight[i], h)
            token = torch.distributions.Categorical(logits=self.head(h)).sample()
            answer.append(token)
        return torch.stack(answer, dim=1)

    def forward(self, prompt, answer):
        h, logits = self.encode(prompt), []
        token = prompt[:, -1]
        for i in range(ANSWER_LEN):
            h = self.cell(self.embed(token) + self.slot.weight[i], h)
            logits.append(self.head(h))
            token = answer[:, i]
        return torch.stack(logits, dim=1)


def token_log_probs(logits, answer):
    return F.log_softmax(logits, dim=-1).gather(-1, answer.unsqueeze(-1)).squeeze(-1)


def reward_fn(prompt, answer):
    """Share of answer tokens that copy the reversed prompt."""
    return (answer == prompt.flip(1)).float().mean(dim=1)


def group_advantages(rewards):
    grouped = rewards.view(PROMPTS, GROUP)
    centred = grouped - grouped.mean(dim=1, keepdim=True)
    return (centred / grouped.std(dim=1, keepdim=True)).view(-1)


# %%
def sample_prompts(n):
    return torch.randint(0, VOCAB, (n, PROMPT_LEN))


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=4e-3)

# A short supervised start so that groups are informative from the beginning.
for step in range(75):
    prompt = sample_prompts(64)
    target = prompt.flip(1)
    loss = F.cross_entropy(policy(prompt, target).flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"supervised loss {loss.item():.3f}")

# %%
for it in range(ITERATIONS):
    prompt = sample_prompts(PROMPTS).repeat_interleave(GROUP, dim=0)
    with torch.no_grad():
        answer = policy.rollout(prompt)
        old_logp = token_log_probs(policy(prompt, answer), answer)
    rewards = reward_fn(prompt, answer)
    advantages = group_advantages(rewards)
    for _ in range(INNER_EPOCHS):
        logp = token_log_probs(policy(prompt, answer), answer)
        ratio = torch.exp(logp - old_logp)
        adv = advantages.unsqueeze(1)
        surrogate = torch.min(ratio * adv, ratio.clamp(1 - CLIP, 1 + CLIP) * adv)
        loss = -surrogate.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
    if it % 15 == 0 or it == ITERATIONS - 1:
        print(f"iteration {it} reward {rewards.mean().item():.3f} loss {loss.item():.4f}")
