"""Models without heads against torch's own, and against a loop over tokens."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from headwise.core.errors import InputError
from headwise.core.spec import canonical_json, from_data, to_data
from headwise.nets import PooledNet, PooledShape
from headwise.nets.sequence import Convolutions, Recurrence, SetPooling, StateSpace
from headwise.nets.sequence.state_space import Scan
from headwise.tasks import Induction, Retrieval, sum_of_maxima
from headwise.training import Training, train

EVERY = [Recurrence(state=5), Convolutions(layers=2), StateSpace(state=3), SetPooling(kind="max")]


def network(pooling, dim: int = 6) -> PooledShape:
    return PooledShape.standard(token_dim=3, pooling=pooling, embed_dim=dim, width=7)


def drawn(shape: PooledShape, seed: int = 0) -> dict[str, torch.Tensor]:
    noise = torch.Generator().manual_seed(seed)
    return {
        name: value.double()[None] + 0.3 * torch.randn(1, *value.shape, generator=noise).double()
        for name, value in shape.initial_params(seed).items()
    }


def hidden(length: int = 9) -> torch.Tensor:
    noise = torch.Generator().manual_seed(1)
    return torch.randn(1, 4, length, 7, generator=noise).double().relu()


def tokens_of(params: dict[str, torch.Tensor], rows: torch.Tensor) -> torch.Tensor:
    return rows @ params["embed.1.weight"][0].T + params["embed.1.bias"][0]


def test_the_recurrence_is_torchs_gru():
    shape = network(Recurrence(state=5))
    params = drawn(shape)
    gru = torch.nn.GRU(6, 5, batch_first=True).double()
    with torch.no_grad():
        for theirs, ours in (("ih", "token"), ("hh", "state")):
            getattr(gru, f"weight_{theirs}_l0").copy_(params[f"recurrence.{ours}.weight"][0])
            getattr(gru, f"bias_{theirs}_l0").copy_(params[f"recurrence.{ours}.bias"][0])
        wanted = gru(tokens_of(params, hidden()[0]))[0][:, -1]
        found = shape.pooling.pool(params, hidden(), "embed.1")[0]
    assert (found - wanted).abs().max() < 1e-10


@pytest.mark.parametrize("length", [1, 2, 3, 9, 20])
@pytest.mark.parametrize(("layers", "kernel"), [(1, 2), (1, 5), (3, 3), (4, 2), (2, 4)])
def test_the_convolution_is_torchs(layers, kernel, length):
    shape = network(Convolutions(layers=layers, kernel=kernel))
    params = drawn(shape)
    stream = tokens_of(params, hidden(length)[0]).mT  # (batch, channels, length)
    for layer in range(layers):
        weight = params[f"convolutions.{layer}.weight"][0].view(6, kernel, 6)  # the latest first
        padded = functional.pad(stream, ((kernel - 1) << layer, 0))
        mixed = functional.conv1d(
            padded, weight.permute(0, 2, 1).flip(2), params[f"convolutions.{layer}.bias"][0],
            dilation=1 << layer,
        )  # fmt: skip
        stream = stream + mixed.relu()
    found = shape.pooling.pool(params, hidden(length), "embed.1")[0]
    assert (found - stream[:, :, -1]).abs().max() < 1e-10


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9])
def test_the_scan_is_the_recurrence(length):
    noise = torch.Generator().manual_seed(2)
    steps = torch.randn(1, 2, length, 3, generator=noise, dtype=torch.complex128)
    factor = 0.9 * torch.randn(1, 1, 1, 3, generator=noise, dtype=torch.complex128)
    state, wanted = torch.zeros(1, 2, 3, dtype=torch.complex128), []
    for t in range(length):
        state = factor[:, 0] * state + steps[:, :, t]
        wanted.append(state)
    assert (Scan.apply(steps, factor) - torch.stack(wanted, 2)).abs().max() < 1e-12


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 6])
def test_the_state_space_is_a_loop_over_tokens(layers, length):
    shape = network(StateSpace(state=3, layers=layers))
    params = {name: value[0] for name, value in drawn(shape).items()}
    stream = tokens_of(drawn(shape), hidden(length)[0])
    for layer in range(layers):
        own = {name[9:]: value for name, value in params.items() if f"states.{layer}." in name}
        factor = torch.exp(torch.complex(-0.5 * own["rate"].exp(), own["turn"]))
        state, after = torch.zeros(4, 3, dtype=torch.complex128), []
        for token in stream.unbind(1):
            step = token @ own["into.weight"].T
            state = factor * state + torch.complex(step[:, :3], step[:, 3:])
            read = torch.cat([state.real, state.imag], 1) @ own["out.weight"].T
            skip = token @ own["skip.weight"].T + own["skip.bias"]
            after.append(token + functional.gelu(read + skip))
        stream = torch.stack(after, 1)
    found = shape.pooling.pool(drawn(shape), hidden(length), "embed.1")[0]
    assert (found - stream[:, -1]).abs().max() < 1e-10


@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("pooling", EVERY)
def test_gradients_are_those_of_small_differences(pooling, length):
    shape = network(pooling)
    params = {name: value.requires_grad_() for name, value in drawn(shape).items()}
    names = [name for name in params if name.split(".")[0] not in ("embed", "readout")]
    rows = hidden(length).requires_grad_()

    def pooled(rows, *values):
        own = params | dict(zip(names, values, strict=True))
        return pooling.pool(own, rows, "embed.1")

    assert torch.autograd.gradcheck(pooled, (rows, *(params[name] for name in names)))


def test_a_state_space_reaches_back_to_the_first_token():
    shape = network(StateSpace(state=3))
    params, inputs = drawn(shape), torch.zeros(1, 1, 40, 3).double()
    changed = inputs.clone()
    changed[0, 0, 0] = 5.0
    assert (shape.forward(params, inputs) - shape.forward(params, changed)).abs().max() > 1e-6


def test_a_convolution_reaches_as_far_as_it_says():
    pooling = Convolutions.reaching(20)
    assert 1 + 2 * (2**pooling.layers - 1) >= 20 > 1 + 2 * (2 ** (pooling.layers - 1) - 1)


@pytest.mark.parametrize("kind", ["max", "mean"])
def test_sets_do_not_care_for_order(kind):
    shape = network(SetPooling(kind=kind))
    params = drawn(shape)
    inputs = torch.randn(1, 3, 8, 3, generator=torch.Generator().manual_seed(3)).double()
    gap = shape.forward(params, inputs) - shape.forward(params, inputs.flip(2))
    assert gap.abs().max() < 1e-12


def test_max_pooling_is_the_retrieval_target_by_construction():
    """D channels that hold ⟨a_i, x⟩ = ReLU(⟨a_i, x⟩) − ReLU(−⟨a_i, x⟩), and their sum."""
    task = sum_of_maxima(length=6, intrinsic_dim=3, token_dim=3)
    shape = PooledShape.standard(token_dim=3, pooling=SetPooling(kind="max"), embed_dim=3, width=6)
    rows = torch.tensor(task.features.weights).double()
    params = {
        name: torch.zeros(1, *size).double() for name, size in shape.parameter_shapes().items()
    }
    params["embed.0.weight"][0] = torch.cat([rows, -rows])
    params["embed.1.weight"][0] = torch.cat([torch.eye(3), -torch.eye(3)], 1)
    inputs, answers = task.sample(50, seed=1)
    pooled = shape.pooling.pool(
        params, (inputs.double()[None] @ params["embed.0.weight"][0].T).relu(), "embed.1"
    )
    assert (pooled[0].sum(1) - answers.double()).abs().max() < 1e-5


@pytest.mark.parametrize("pooling", EVERY)
def test_it_trains_alone_as_beside_others_and_is_stored(pooling, tmp_path):
    task, shape = sum_of_maxima(length=5, intrinsic_dim=2, token_dim=3), network(pooling)
    training = Training(steps=6, rate=1e-2, batch=8, samples=64, validation=32, evaluations=2)
    alone = train(task, shape, training, seeds=[2])[0]
    beside = train(task, shape, training, seeds=[0, 1, 2])[2]
    assert alone.error == beside.error
    assert all(torch.equal(alone.params[name], beside.params[name]) for name in alone.params)
    assert from_data(to_data(shape)) == shape
    net = PooledNet(shape, alone.params)
    net.save_pretrained(tmp_path)
    inputs, _ = task.sample(4, seed=1)
    assert torch.equal(PooledNet.from_pretrained(tmp_path)(inputs), net(inputs))
    assert "stacked" in alone.engine


def test_equal_variants_have_equal_specifications():
    texts = {
        canonical_json(PooledShape.of_heads(token_dim=2, heads=2, variant=text))
        for text in ("grouped", "grouped:1")
    }
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Recurrence(state=0), "state is 0"),
        (lambda: Recurrence(state=True), "state is True"),
        (lambda: Convolutions(layers=99), "layers is 99"),
        (lambda: Convolutions.reaching(32, kernel=1), "kernel is 1"),  # would never get there
        (lambda: Convolutions.reaching(0), "length is 0"),
        (lambda: StateSpace(state=1.5), "state is 1.5"),
        (lambda: SetPooling(kind="median"), "'max' or 'mean'"),
        (lambda: replace(network(EVERY[0]), embed_dim=0), "embed_dim is 0"),
        (lambda: PooledShape.of_heads(token_dim=2, heads=3, variant="grouped:2"), "evenly"),
        (lambda: Induction(length=2, symbols=4), "length is 2"),
        (lambda: Induction(length=9, symbols=2), "symbols is 2"),
    ],
)
def test_bad_input_gets_a_sentence(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_induction_asks_for_what_followed():
    task = Induction(length=11, symbols=5)
    tokens, answers = task.sample(300, seed=4)
    symbols, wanted = tokens.argmax(-1).tolist(), answers.argmax(-1).flatten().tolist()
    for row, answer in zip(symbols, wanted, strict=True):
        places = [t for t in range(10) if row[t] == row[-1]]
        assert len(places) == 1
        assert row[places[0] + 1] == answer != row[-1]
    assert torch.equal(task.oracle(tokens), answers)
    again, _ = task.sample(300, seed=4)
    assert torch.equal(tokens, again)


def test_positions_matter_where_features_look_at_parts():
    """The one-hot position tells tokens apart that are equal."""
    shape = replace(PooledShape.of_heads(token_dim=3, heads=2), positions=4)
    params = drawn(shape)
    inputs = torch.randn(1, 2, 4, 3, generator=torch.Generator().manual_seed(5)).double()
    assert (
        shape.forward(params, inputs) - shape.forward(params, inputs.flip(2))
    ).abs().max() > 1e-6
    task = Retrieval(features=sum_of_maxima(4, 2).features, length=4, subsets=((0, 1), (2, 3)))
    assert task.set_sizes == (2, 2)
