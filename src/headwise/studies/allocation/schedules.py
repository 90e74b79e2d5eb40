"""Decoders on real text at equal attention parameters: does it matter which layer gets them?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

from headwise.allocation.fill import Layers
from headwise.allocation.plan_file import read_allocation
from headwise.allocation.schedules import SCHEDULES, schedule
from headwise.core.errors import InputError, require
from headwise.lab.kinds.text import TEXT
from headwise.lab.run import Run
from headwise.lab.study import Claim, IntervalFigure, Study, tiers_of
from headwise.nets import DecoderShape
from headwise.nets.variants import find_variant
from headwise.nets.variants.named import settled
from headwise.studies.allocation import claims
from headwise.studies.allocation.plans import PLANS
from headwise.studies.differences import ALLOCATION_PAPER
from headwise.tasks.language import Language
from headwise.tasks.texts import SHAKESPEARE, WIKIPEDIA
from headwise.training import TextTraining

PLAN = claims.PLAN
TEXTS = (SHAKESPEARE, WIKIPEDIA)


@dataclass(frozen=True)
class Size:
    """A tier's decoder and training. The uniform schedule has `heads` heads, qk_dim = v_dim."""

    layers: int
    width: int
    heads: int
    multiple: int
    length: int
    training: TextTraining
    seeds: int
    attention: str = "plain"

    @property
    def budget(self) -> int:
        """Attention parameters: those of width² query, key, value and output maps."""
        return self.layers * 4 * self.width**2

    def schedules(self) -> dict[str, Layers]:
        """The named schedules, which all spend the budget, as far as the attention takes them."""
        every = {
            name: schedule(
                name,
                layers=self.layers,
                width=self.width,
                budget=self.budget,
                heads=self.heads,
                multiple=self.multiple,
            )
            for name in SCHEDULES
        }
        taken = {name: layers for name, layers in every.items() if self.takes(layers)}
        require(
            "uniform" in taken and len(taken) > 1,
            f"{self.attention} attention does not fit {self.heads} heads a layer and another "
            f"schedule of them, so there is nothing to compare",
        )
        return taken

    def takes(self, layers: Layers) -> bool:
        """Has the attention a form with each layer's heads? Two groups have none with three."""
        try:
            settled(self.attention, layers)
        except InputError:
            return False
        return True

    def runs(self, task: Language, layers: Layers) -> list[Run]:
        """One schedule on one text, with and without QK-norm, all seeds."""
        return [
            Run(
                kind="text",
                task=task,
                net=self._net(task, layers, qk_norm),
                training=self.training,
                seed=seed,
            )
            for qk_norm, seed in product((False, True), range(self.seeds))
        ]

    def _net(self, task: Language, layers: Layers, qk_norm: bool) -> DecoderShape:
        return DecoderShape(
            vocabulary=task.vocabulary,
            width=self.width,
            layers=layers,
            ffn=4 * self.width,
            length=self.length,
            positions="rope",
            qk_norm=qk_norm,
            attention=self.attention,
        )


_QUICK = TextTraining(steps=80, rate=0.01, batch=16, validation=256, evaluations=1)
_STANDARD = TextTraining(steps=150, rate=0.008, batch=16, validation=400, evaluations=1)
_FULL = TextTraining(steps=5_000, rate=0.002, batch=32, evaluations=10)
SIZES = {
    "quick": Size(4, width=32, heads=4, multiple=2, length=64, training=_QUICK, seeds=3),
    "standard": Size(6, width=64, heads=4, multiple=4, length=128, training=_STANDARD, seeds=7),
    "full": Size(6, width=256, heads=8, multiple=8, length=256, training=_FULL, seeds=8),
}


def parts(tier: str, attention: str = "plain") -> dict[str, list[Run]]:
    """Every schedule on both texts, and in the standard tier the plan that was raced for it."""
    size = replace(SIZES[tier], attention=attention)
    plans = PLANS if tier == "standard" else {}
    return _parts(size, [text.task(size.length) for text in TEXTS], plans)


def parts_of_files(tier: str, texts: Sequence[Path], plans: Sequence[Path]) -> dict[str, list[Run]]:
    """The same on the user's own texts, or with the user's own plans: one for all, or one each."""
    size = SIZES[tier]
    tasks = [Language.from_file(path, size.length) for path in texts]
    tasks = tasks or [text.task(size.length) for text in TEXTS]
    require(
        len({task.name for task in tasks}) == len(tasks),
        "two texts have the same name; a table could not tell them apart",
    )
    require(
        len(plans) in (0, 1, len(tasks)),
        f"give one --plan for all texts, or one for each of the {len(tasks)}",
    )
    layers = [_fitting(size, file) for file in plans] * (len(tasks) if len(plans) == 1 else 1)
    found = {task.name: each for task, each in zip(tasks, layers, strict=False)}
    return _parts(size, tasks, found)


def _parts(
    size: Size, tasks: Sequence[Language], plans: Mapping[str, Layers]
) -> dict[str, list[Run]]:
    made = {
        name: [run for task in tasks for run in size.runs(task, layers)]
        for name, layers in size.schedules().items()
    }
    planned = [
        run
        for task in tasks
        if task.name in plans and size.takes(plans[task.name])
        for run in size.runs(task, plans[task.name])
    ]
    return {**made, PLAN: planned} if planned else made


def _fitting(size: Size, file: Path) -> Layers:
    plan = read_allocation(file)
    require(
        (plan.width, len(plan.layers)) == (size.width, size.layers)
        and plan.parameters <= size.budget,
        f"{file} is a plan for {len(plan.layers)} layers of width {plan.width} with "
        f"{plan.parameters:,} attention parameters; this tier has {size.layers} layers of width "
        f"{size.width} and {size.budget:,}",
    )
    return plan.layers


ALLOCATION = Study(
    name="allocation",
    title="Which layers should get the heads?",
    question=(
        "Decoders on real text with equal attention parameters, equal tokens and equal batches: "
        "does any way to share heads and dimensions out over layers beat the uniform one?"
    ),
    paper=ALLOCATION_PAPER,
    tiers=tiers_of(
        parts,
        {
            "quick": "about 280 CPU-seconds, with a plan 320: under 3 minutes on two cores",
            "standard": "about 34 CPU-minutes: 150 steps of width 64, seven seeds",
            "full": "about 1,100 CPU-hours (estimated); for GPUs",
        },
    ),
    parts={
        **{name: f"{name}: {each.title} ({each.source})" for name, each in SCHEDULES.items()},
        PLAN: f"{PLAN}: found by `headwise plan`",
    },
    claims=(
        Claim("Early-heavy beats uniform", "2510.03784", claims.beats_uniform("early-heavy")),
        Claim(
            "Few wide heads, then many narrow ones, beat uniform",
            "Prism, 2606.27449",
            claims.beats_uniform("wide-then-many"),
        ),
        Claim("Rising beats uniform", "OpenELM, 2404.14619", claims.beats_uniform("rising")),
        Claim(
            "Many heads at first, then one a layer, is no worse than uniform",
            "2408.04532",
            claims.no_worse_than_uniform("many-then-one"),
        ),
        Claim(
            "No schedule differs from uniform by more than 0.02 nats a byte",
            "an equivalence test",
            claims.all_equal_to_uniform,
        ),
        Claim(
            "headwise's plan is, within its interval, as good as every named schedule",
            "headwise plan",
            claims.plan_is_as_good,
        ),
        Claim(
            "QK-norm does not change which schedule is best",
            "the head-split confound",
            claims.same_best_with_qk_norm,
        ),
    ),
    figures=(
        IntervalFigure(
            "loss",
            "Held-out loss at equal attention parameters",
            "Mean over seeds with its 95 % interval, nats a byte; left is better.",
            "held-out loss, nats a byte",
            claims.losses,
        ),
        IntervalFigure(
            name="difference",
            title="Difference to uniform",
            caption="Seed by seed on equal batches: mean and 95 % interval; left of 0 is better.",
            axis="loss minus uniform's, nats a byte",
            data=claims.differences,
            zero=True,
        ),
    ),
    finding=claims.finding,
    notes=(
        "Byte-level decoders: pre-norm, RoPE, RMS norms, GELU, no biases, a tied head. All have "
        "the same width, feed-forward networks, attention parameters, tokens and, seed by seed, "
        "the same batches. `flops_per_token` counts the matrix products of a training step: "
        "narrower or more heads change the scores' share of it by less than the table shows.",
        "The last tenth of a text is held out; the score is the loss after the last step on "
        "evenly spaced windows of it. Nothing is chosen by it: `headwise plan` looks at the text "
        "before it only, and uses other seeds. In the standard tier the plan is what it chose "
        "there (on Shakespeare the schedule “random”); in others, give its file.",
        "AdamW, betas (.9, .95), 10 % warm-up, cosine to zero, gradients clipped at norm 1; one "
        "learning rate for all, chosen on the uniform schedule.",
        "Intervals are over seeds (initial weights and batches), and in the verdicts also over "
        "texts and seeds together; they are not corrected for the number of comparisons.",
        "Texts: headwise study fetch allocation; or your own: --text FILE. To compare a plan: "
        "--plan FILE.",
    ),
    setting=("text", "qk_norm", "shape"),
    rows=("part",),
    columns="arm",
    error=replace(
        TEXT.error,
        meaning="mean cross-entropy of the next byte on held-out text, nats a byte",
        unit="nats a byte",
    ),
    score="mean",
    paired=True,
    texts=TEXTS,
    parts_of_files=parts_of_files,
)


def with_attention(attention: str) -> Study:
    """The same comparison with decoders of a variant of attention, such as "talking".

    The schedules share out what would be equal budgets of plain heads; what a variant adds or
    shares makes them differ, and the table shows every network's attention parameters. Schedules
    that have a layer with no such form (two groups of three heads) are left out.
    """
    attention = str(find_variant(attention))
    prices = {name: tier.price for name, tier in ALLOCATION.tiers.items()}
    return replace(
        ALLOCATION,
        name=f"allocation-{attention.replace(':', '-')}",
        title=f"{ALLOCATION.title} ({attention} attention)",
        tiers=tiers_of(partial(parts, attention=attention), prices),
        parts_of_files=None,
    )
