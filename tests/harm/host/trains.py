"""Training loops whose losses and counters must be the same to the last bit, one case per name."""

import collections
import gc
import os
import signal
import sys
import threading
import time
import warnings
import weakref

import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))


def train(model, steps=12, make=torch.optim.AdamW, seed=1):
    generator = torch.Generator().manual_seed(seed)
    optimizer = make(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        x = torch.randn(4, 8, generator=generator)
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    return losses


@case
def plain():
    print(train(network(), 40))


@case
def random_streams():
    import random

    import numpy as np

    random.seed(1)
    np.random.seed(1)
    print(train(network()), random.random(), np.random.rand(), torch.rand(2), torch.initial_seed())


@case
def with_loader():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(32, 8)), batch_size=4, shuffle=True)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(2):
        for (x,) in loader:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            print(loss.item().hex())


@case
def with_closure():
    model, x = network(), torch.randn(8, 8)
    model.eval()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    calls = []

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        calls.append(loss.item().hex())
        return loss

    for _ in range(4):
        optimizer.step(closure)
    print(calls)


@case
def mixed_precision():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(8):
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(torch.randn(4, 8)).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex(), torch.is_autocast_enabled("cpu"))


@case
def several_threads():
    found, models = {}, [network(k).eval() for k in range(3)]

    def work(k):
        found[k] = train(models[k], 60, seed=k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print([found[k][-1] for k in range(3)])


@case
def one_thread_after_the_other():
    for k in range(2):
        thread = threading.Thread(target=lambda k=k: print(train(network(k))[-1]))
        thread.start()
        thread.join()
    print(train(network())[-1])


@case
def thread_left_training():
    threading.Thread(target=lambda: (time.sleep(0.2), print(train(network())))).start()


@case
def threads_seen():
    print(train(network())[-1], [t.name for t in threading.enumerate()])


@case
def replaced_functions():
    counts = {"relu": 0, "backward": 0, "linear": 0}
    relu, backward, linear = F.relu, torch.Tensor.backward, F.linear

    def counted(name, original):
        def call(*args, **kwargs):
            counts[name] += 1
            return original(*args, **kwargs)

        return call

    F.relu, F.linear = counted("relu", relu), counted("linear", linear)
    torch.Tensor.backward = counted("backward", backward)
    print(train(network(), 30), counts)


@case
def counted_in_a_dispatch_mode():
    class Counts(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Counts.calls += 1
            return func(*args, **(kwargs or {}))

    with Counts():
        print(train(network(), 30))
    print(Counts.calls)


@case
def counted_in_a_function_mode():
    class Counts(TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            Counts.calls += 1
            return func(*args, **(kwargs or {}))

    with Counts():
        print(train(network(), 30))
    print(Counts.calls)


@case
def counted_in_hooks():
    model, seen = network(), []
    model[0].register_forward_hook(lambda *_: seen.append("forward"))
    model[3].register_full_backward_hook(lambda *_: seen.append("backward"))
    model[0].weight.register_hook(lambda grad: seen.append("grad"))
    print(train(model, 20), len(seen), seen[:6])


@case
def batches_are_let_go():
    model, alive, refs = network(), [], []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(25):
        x = torch.randn(4, 8)
        refs.append(weakref.ref(x))
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        del x, loss
        alive.append(sum(ref() is not None for ref in refs))
    print(alive, gc.isenabled())


@case
def batches_of_own_classes_are_let_go():
    class Own:
        def __init__(self, x):
            self.x = x

    class Listed(list):
        @property
        def x(self):
            return self[0]

    class Table(collections.UserDict):
        @property
        def x(self):
            return self["x"]

    for kind in (Own, lambda x: Listed([x]), lambda x: Table(x=x)):
        model, alive, refs = network(), [], []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        loader = DataLoader(
            torch.randn(48, 8),
            batch_size=4,
            collate_fn=lambda rows, kind=kind: kind(torch.stack(rows)),
        )
        for _ in range(2):
            for batch in loader:
                refs.append(weakref.ref(batch))
                optimizer.zero_grad()
                loss = model(batch.x).square().mean()
                loss.backward()
                optimizer.step()
                del batch, loss
                alive.append(sum(ref() is not None for ref in refs))
        print(alive)


@case
def settings_from_locals():
    rate, width = 0.01, 8
    settings = locals()
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(6):
        x = torch.randn(4, width)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    print(settings)


@case
def model_is_let_go():
    model = network()
    train(model, 5)
    ref = weakref.ref(model)
    del model
    gc.collect()
    print(ref() is None)


@case
def shape_error():
    model = network()
    train(model, 2)
    model(torch.zeros(2, 7))


@case
def own_error_in_forward():
    class Net(nn.Module):
        def forward(self, x):
            raise LookupError("in forward")

    Net()(torch.zeros(1))


@case
def caught_error():
    model = network()
    for width in (8, 7, 8):
        try:
            print(model(torch.zeros(2, width)).shape)
        except RuntimeError as error:
            print(str(error)[:60])
    print(train(model)[-1])


@case
def exit_in_the_middle():
    print(train(network()))
    sys.exit(3)


@case
def terminated_in_the_middle():
    import os

    print(train(network())[-1], flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)


@case
def handler_in_the_middle():
    signal.signal(signal.SIGUSR1, lambda number, frame: print("handled", frame.f_code.co_name))
    for _ in range(3):
        signal.raise_signal(signal.SIGUSR1)
        print(train(network(), 4)[-1])


@case
def saved_files():
    model = network()
    train(model)
    torch.save(model.state_dict(), "model.pt")
    print(sorted(torch.load("model.pt"))[:2])


@case
def gradient_mode():
    model = network()
    with torch.no_grad():
        print(model.eval()(torch.ones(1, 8)).requires_grad)
    print(train(model.train())[-1], torch.is_grad_enabled(), torch.is_inference_mode_enabled())


@case
def anomaly_mode():
    with torch.autograd.set_detect_anomaly(True):
        print(train(network(), 5))


@case
def graph_of_second_order():
    model, x = network().eval(), torch.randn(4, 8, requires_grad=True)
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    slope.square().sum().backward()
    print([p.grad is not None and p.grad.norm().item().hex() for p in model.parameters()])


@case
def traced_by_settrace():
    calls = []
    sys.settrace(lambda frame, event, arg: calls.append(frame.f_code.co_name))
    losses = train(network(), 3)
    sys.settrace(None)
    print(losses, calls.count("train"), calls.count("network"))


@case
def pickled_model():
    import pickle

    model = network()
    train(model, 3)
    print(len(pickle.dumps(model)), type(pickle.loads(pickle.dumps(model))).__name__)


@case
def optimizer_state():
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    print(optimizer.state_dict()["state"][0]["exp_avg"].sum().item().hex())
    print(optimizer._optimizer_step_pre_hooks, nn.modules.module._global_forward_hooks)


@case
def clipping_of_a_used_up_generator():
    model = network()
    model(torch.ones(2, 8)).sum().backward()
    parameters = model.parameters()
    print(nn.utils.clip_grad_norm_(parameters, 0.1).item().hex())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nn.utils.clip_grad_norm_(parameters, 0.1)
    print([str(warning.message) for warning in caught])


@case
def models_that_come_and_go_without_an_optimizer():
    import gc
    import weakref

    alive = []
    for _ in range(20):
        model = network()
        model(torch.ones(2, 8)).sum().backward()
        alive.append(weakref.ref(model))
    del model
    gc.collect()
    print(sum(ref() is not None for ref in alive) <= 1)  # the latest may still be looked at
    wide = 300 * 400
    for _ in range(40):
        model = nn.Linear(300, 400)
        model(torch.ones(2, 300)).sum().backward()
    gc.collect()
    objects = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor)]
    print(sum(o.numel() == wide for o in objects) <= 10)  # weights, gradients, copies of them


@case
def more_samples_than_an_iterable_data_set_says():
    class Longer(torch.utils.data.IterableDataset):
        def __len__(self):
            return 2

        def __iter__(self):
            return iter(torch.arange(6.0))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        print([batch.tolist() for batch in torch.utils.data.DataLoader(Longer(), batch_size=1)])
    print([str(warning.message) for warning in caught])


@case
def what_the_scripts_own_profiler_counts():
    model = network()
    rows = torch.ones(2, 8)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # it prints the time of day there
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        model(rows).sum().backward()
    print(sorted(event.name for event in profiler.events()))


@case
def layers_without_a_shape_yet_and_without_a_mode():
    lazy = nn.Sequential(nn.LazyBatchNorm1d(), nn.LazyLinear(2))
    print(lazy(torch.ones(4, 3)).shape)

    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    outer = nn.Sequential(nn.Linear(4, 4))
    del layer.self_attn.training, outer.training
    optimizer = torch.optim.SGD([*layer.parameters(), *outer.parameters()], 0.1)
    for _ in range(6):
        optimizer.zero_grad()
        loss = outer(torch.ones(2, 4)).square().sum()
        try:
            loss = loss + layer(torch.ones(2, 3, 4)).square().sum()
        except AttributeError as error:
            print(error)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            outer(torch.ones(2, 4))
        print(loss.item().hex())


@case
def losses_in_other_layouts():
    warnings.simplefilter("ignore")  # one of torch's compiled code names the line that called it
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for _ in range(6):
        optimizer.zero_grad()
        rows = model(torch.ones(2, 8))
        if torch.backends.mkldnn.is_available():
            rows.to_mkldnn().backward(torch.ones_like(rows).to_mkldnn())
        else:
            rows.backward(torch.ones_like(rows))
        nested = torch.nested.as_nested_tensor([model(torch.ones(k, 8)) for k in (1, 2)])
        nested.backward(torch.nested.nested_tensor([torch.ones(k, 1) for k in (1, 2)]))
        optimizer.step()
        print([parameter.grad.sum().item().hex() for parameter in model.parameters()])


@case
def threads_that_train_in_between():
    model, others = network().eval(), [network(k).eval() for k in range(3)]
    for _ in range(2):
        print(train(model)[-1])
        found = {}

        def work(k, found=found):
            found[k] = train(others[k], 30, seed=k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print([found[k][-1] for k in range(3)])
    print(train(model)[-1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    CASES[sys.argv[1]]()
