"""The rank paper's experiment on linear regression in context: heads at a fixed width."""

from itertools import product

import pandas as pd

from headwise.lab.kinds import Quantity
from headwise.lab.run import Run
from headwise.lab.study import NOT_TESTED, Claim, Conclusion, Figure, Verdict
from headwise.nets.encoder import EncoderShape
from headwise.studies.published import as_references
from headwise.studies.rank import shared
from headwise.studies.rank.questions import rank_study
from headwise.tasks.regression import InContextRegression
from headwise.training import Streaming


def _runs(
    task: InContextRegression,
    width: int,
    layers: int,
    heads: tuple[int, ...],
    training: Streaming,
    seeds: int,
) -> list[Run]:
    nets = [
        EncoderShape.plain(
            token_dim=task.token_dim,
            outputs=1,
            width=width,
            heads=count,
            layers=layers,
            ffn=4 * width,
            keys="earlier",
            positions=task.length,
        )
        for count in heads
    ]
    return [
        Run(kind="tokens", task=task, net=net, training=training, seed=seed)
        for net, seed in product(nets, range(seeds))
    ]


def quick_parts() -> dict[str, list[Run]]:
    """3 dimensions and 6 shots instead of 20 and 40; 2 layers of width 16 instead of 12 of 48."""
    training = Streaming(steps=3_000, rate=0.005, batch=32, validation=4096)
    task = InContextRegression(dim=3, shots=6)
    return {"in-context": _runs(task, 16, 2, (1, 2, 4, 16), training, seeds=4)}


def standard_parts() -> dict[str, list[Run]]:
    """4 dimensions, 8 shots, 3 layers of width 32; six seeds."""
    training = Streaming(steps=3_000, rate=0.003, batch=32)
    task = InContextRegression(dim=4, shots=8)
    return {"in-context": _runs(task, 32, 3, (1, 2, 4, 16), training, seeds=6)}


def full_parts() -> dict[str, list[Run]]:
    """The paper's size: 20 dimensions, 40 shots, 12 layers of width 48."""
    training = Streaming(steps=500_000, rate=1e-3, batch=64)
    task = InContextRegression(dim=20, shots=40)
    return {"in-context": _runs(task, 48, 12, (1, 2, 4, 8, 16), training, seeds=5)}


def published() -> pd.DataFrame:
    """Read off the paper's figure."""
    return shared.read_offs({"in-context": "rank_in_context.csv"})


def references(ours: pd.DataFrame) -> pd.DataFrame:
    """The published curve."""
    return as_references(published(), "published, 20 dimensions, 40 shots, 12 layers")


def many_heads_hurt(results: pd.DataFrame) -> Verdict:
    """The most heads (smallest rank) are worse than the best number of heads, which is small."""
    errors = shared.smallest(results, ["heads"])
    if len(errors) < 3:
        return NOT_TESTED
    best, most = int(errors.idxmin()), int(errors.index.max())
    numbers = ", ".join(
        f"{heads} head{'s' * (heads > 1)}: {error:.3g}" for heads, error in errors.items()
    )
    loss = float(errors[most] / errors[best])
    meaning = f"error with the most heads over the least error (bar {shared.HELPS:g}×)"
    return Verdict.of(best < most and loss > shared.HELPS, numbers, loss, meaning)


MANY_HURT = shared.beside(many_heads_hurt, published)


def finding(results: pd.DataFrame) -> Conclusion:
    """The best number of heads, if many heads hurt."""
    errors = shared.smallest(results, ["heads"])
    if errors.empty:
        return Conclusion("No run is finished.", None, "finishing the study")
    best = int(errors.idxmin())
    numbers = ", ".join(f"{heads}: {error:.3g}" for heads, error in errors.items())
    if many_heads_hurt(results).status != "holds":
        return Conclusion(
            f"Inconclusive: the error by heads is {numbers}; the most heads do not clearly hurt.",
            None,
            "a larger tier",
        )
    are = "head is" if best == 1 else "heads are"
    return Conclusion(f"At fixed width {best} {are} best; error by heads: {numbers}.", best)


RANK_IN_CONTEXT = rank_study(
    "rank-in-context",
    tiers=(quick_parts, standard_parts, full_parts),
    published=published,
    claims=(Claim("At fixed width, many heads hurt", "in-context regression", MANY_HURT),),
    figures=(
        Figure(
            "in-context",
            "Regression in context: heads at fixed width",
            "Smallest error over seeds after all shots, relative to answering zero.",
            {"in-context": "in-context linear regression"},
            x="heads",
            colour="layers",
            x_log=True,
            references=references,
        ),
    ),
    finding=finding,
    notes=(
        "Tokens x_1, y_1, x_2, …; y = ⟨w, x⟩ with w and x standard Gaussian, new in every "
        "sequence. The loss is that of all answers, the score that of the last, which has seen "
        "all shots.",
        "Pre-norm encoder with causal mask, layer norms and learned positions; AdamW, betas "
        "(.9, .95), no weight decay, 5 % warm-up, cosine to zero. The paper leaves these open.",
        "Quick: 3 dimensions, 6 shots, 2 layers, width 16, 3000 steps; the paper has 20, 40, 12 "
        "and 48. Standard: 4 dimensions, 8 shots, 3 layers, width 32, 3000 steps, six seeds.",
    ),
    setting=("dim", "length", "layers", "heads", "rank"),
    rows=("heads",),
    columns="layers",
    error=Quantity(
        name="mean-square error",
        meaning="mean-square error of the last answer / E y²; answering zero scores 1",
        unit="share of the answer's mean square",
    ),
)
