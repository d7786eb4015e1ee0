"""Log-probabilities of drawn actions, weighed in the loss: rewards with and without the minus sign,
costs, and how the script's own numbers decide."""

from dataclasses import replace

import pytest
import torch
from tests.faults.crash_runs import died
from tests.observe.deep.watching import observe
from torch import nn
from torch.distributions import Categorical, Independent, Normal
from torch.nn import functional as F

from sawbones import faults
from sawbones.faults.loss.wrong_sign import trial
from sawbones.schema import Ending, Finding, Run, Site
from sawbones.schema.populations import CopiedRows
from sawbones.stats.printed_series import is_ahead, rewards
from sawbones.trials.remedies.draws_turned import turning

STATES = torch.randn(24, 5, generator=torch.Generator().manual_seed(1))
ACTIONS = torch.arange(24) % 3
WORTH = torch.linspace(-1, 2, 24)


def _picked(out):
    return F.log_softmax(out, -1).gather(1, ACTIONS[:, None]).squeeze(1)


def _surrogate(out):
    ratio = (_picked(out) - _picked(out).detach() - 0.01).exp()
    return -torch.min(ratio * WORTH, ratio.clamp(0.9, 1.1) * WORTH).mean()


def _one_by_one(out):
    chosen = Categorical(logits=out).log_prob(ACTIONS)
    return torch.stack([-chosen[i] * w for i, w in enumerate(WORTH.tolist())]).sum()


LOSSES = {
    "categorical": lambda out: -(Categorical(logits=out).log_prob(ACTIONS) * WORTH).mean(),
    "gathered": lambda out: -(_picked(out) * WORTH).sum(),
    "indexed": lambda out: -(out.softmax(-1)[torch.arange(24), ACTIONS].log() * WORTH).mean(),
    "entropies": lambda out: (F.cross_entropy(out, ACTIONS, reduction="none") * WORTH).mean(),
    "normal": lambda out: (
        -(Independent(Normal(out, 1.0), 1).log_prob(torch.ones(24, 3)) * WORTH).mean()
    ),
    "dot": lambda out: -torch.dot(Categorical(logits=out).log_prob(ACTIONS), WORTH),
    "surrogate": _surrogate,
    "one by one": _one_by_one,
}


def _drawn(loss):
    torch.manual_seed(0)
    model = nn.Linear(5, 3)
    return observe(model, lambda: loss(model(STATES))).probes.get("draws")


@pytest.mark.parametrize("spelling", LOSSES)
def test_the_sign_is_read_off_whatever_the_spelling(spelling):
    right, wrong = LOSSES[spelling], lambda out: -LOSSES[spelling](out)
    assert _drawn(right)["agreement"] < -0.9
    assert _drawn(wrong)["agreement"] > 0.9


@pytest.mark.parametrize(
    "loss",
    [
        lambda out: F.mse_loss(out.gather(1, ACTIONS[:, None]).squeeze(1), WORTH),
        lambda out: F.cross_entropy(out, ACTIONS),
        lambda out: (out * WORTH[:, None]).sum(),
    ],
)
def test_values_of_actions_and_plain_losses_draw_nothing(loss):
    assert _drawn(loss) is None


PULLS = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    policy = nn.Linear(2, 4)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)
    paid = torch.tensor([0.0, 0.2, 0.4, 1.0])
    for round in range(45):
        drawn = torch.distributions.Categorical(logits=policy(torch.ones(32, 2)))
        arm = drawn.sample()
        payment = paid[arm]
        weight = payment - payment.mean()
        loss = {sign}(drawn.log_prob(arm) * weight).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if round % 5 == 0:
            print(f"round {{round}} loss {{loss.item():.3f}} {word} {{payment.mean():.3f}}")
"""


def _found(folder, sign, word):
    run = died(folder, PULLS.format(sign=sign, word=word))
    return run, faults.read(run, strict=True).findings


def test_a_reward_that_falls_without_the_minus_is_suspected_until_a_trial(tmp_path):
    _, (found,) = _found(tmp_path, "", "mean reward")
    assert (found.fault, found.status, found.experiment) == (
        "loss.wrong-sign",
        "suspected",
        "gradient_turned",
    )
    assert "loss = (drawn.log_prob(arm) * weight).mean()" in found.where[0].code
    assert "'mean reward'" in found.evidence[1].text


@pytest.mark.parametrize(
    ("sign", "word"), [("-", "mean reward"), ("", "mean cost"), ("", "tour length")]
)
def test_rewards_with_the_minus_and_costs_without_are_silent(tmp_path, sign, word):
    run, found = _found(tmp_path, sign, word)
    assert run.deep[0].probes["draws"] and not found


def test_numbers_go_by_the_words_in_front_of_them():
    lines = [f"step {i} loss {i / 10} best score {i} ep_ret: {-i}. of 200" for i in range(6)]
    (series,) = rewards(lines).values()
    assert (series.label, series.values[-1], series.rises()) == ("ep ret", -5.0, False)


def test_lengths_count_where_no_reward_is_printed():
    both = [f"episode length {20 + i} reward {i}" for i in range(4)]
    assert list(rewards(both)) == ["reward"]
    assert list(rewards(f"episode length {i}" for i in range(4))) == ["episode length"]
    assert not rewards(f"tour length {i}" for i in range(4))


def test_the_later_half_has_to_lie_above_the_other_one_throughout():
    ill, well, mixed = (
        rewards(f"score {v}" for v in values)["score"]
        for values in ([12, 10, 9, 9.5], [13, 30, 60, 80], [12, 10, 9.4, 80])
    )
    assert is_ahead(well, ill) and not is_ahead(mixed, ill) and not is_ahead(ill, well)


HELD_ROWS = """
    import torch
    from torch import nn
    from torch.nn import functional

    torch.manual_seed(0)
    actor, critic = nn.Linear(6, 2), nn.Linear(6, 1)
    agent = nn.ModuleList([actor, critic])
    optimizer = torch.optim.Adam(agent.parameters(), lr=0.01)
    begin = torch.randn(40, 6)
    for round in range(30):
        seen, gone = [], []
        state = begin[torch.randperm(40)[:24]]
        for _ in range(2):
            with torch.no_grad():
                arm = torch.distributions.Categorical(logits=actor(state)).sample()
            seen.append(state), gone.append(arm)
            state = state + 0.5 * (arm[:, None] - 0.5)
        states, arms = torch.cat(seen), torch.cat(gone)
        paid = [float(p) for p in states[:, 0]]
        value = critic(states).squeeze(1)
        weight = torch.tensor(paid) - value.detach()
        drawn = torch.distributions.Categorical(logits=actor(states))
        loss = -(drawn.log_prob(arms) * weight).mean()
        loss = loss + functional.mse_loss(value, torch.tensor(paid))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_states_that_the_model_acts_in_are_no_copies_of_rows(tmp_path):
    run = died(tmp_path, HELD_ROWS)
    met = CopiedRows(0, 1, 256, 216, mixed=0.5, met=0.1, is_telling=True, chance=0.0)
    run = replace(run, populations=replace(run.populations, copied=met))
    undrawn = replace(run, deep=tuple(replace(d, probes={}) for d in run.deep))
    assert not faults.read(run, "evaluation.leak-contamination").findings
    assert faults.read(undrawn, "evaluation.leak-contamination").findings


class _Recorder:
    def __init__(self, site):
        self.facts, self.sites = {}, self
        self._site = site

    def find(self, frame):
        return self._site


def _slope(log_prob, line):
    scores = torch.zeros(1, 3, requires_grad=True)
    recorder = _Recorder(Site("train.py", line))
    places = {("train.py", 7, "log_prob")}
    turned = turning(recorder, log_prob, "log_prob", places, [])
    turned(Categorical(logits=scores), torch.tensor([0])).sum().backward()
    return float(scores.grad[0, 0]), recorder.facts


def test_the_trial_turns_the_gradient_at_its_lines_alone():
    right, untouched = _slope(Categorical.log_prob, 8)
    wrong, told = _slope(Categorical.log_prob, 7)
    assert right > 0 and wrong == -right
    assert told["remedies"] == {"draws_turned": 1} and not untouched


class _Bench:
    """Runs nothing: what a second run printed, and that it was treated."""

    def __init__(self, printed):
        self.log_tail = printed

    def rerun(self, remedies):
        return replace(_said(()), remedies={remedies[0].name: 1})


def _said(scores):
    lines = tuple((i, f"score {s}") for i, s in enumerate(scores))
    return Run("train.py", (), "", {}, Ending("finished"), lines=lines)


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [((12, 30, 60, 80), "confirmed"), ((12, 11, 12, 10), "refuted"), ((), "open")],
)
def test_the_trial_goes_by_what_is_printed(scores, outcome):
    bench = _Bench("\n".join(f"score {s}" for s in scores))
    found = Finding("loss.wrong-sign", "suspected", 0.0, "", (), (), params={"places": []})
    assert trial.run(bench, found, _said((12, 10, 9, 9.5))).outcome == outcome
