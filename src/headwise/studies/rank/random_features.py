"""Two points, one layer of rank 1: the lower bound, random features, trained layers, the vote."""

from itertools import product

from headwise.build.vote import vote_task
from headwise.lab.kinds.built import Construction
from headwise.lab.run import Run
from headwise.lab.study import Claim, Figure
from headwise.nets import AttentionNetShape
from headwise.nets.shape import AttentionShape
from headwise.studies.rank import rank_one_claims as claims
from headwise.studies.rank.questions import rank_study
from headwise.tasks.neighbours import Neighbours
from headwise.training import Streaming


def pair(dim: int) -> Neighbours:
    """The theory's distribution: two orthogonal points and a query."""
    return Neighbours(dim=dim, points=2, sampler="orthogonal")


def _built(
    name: str, dims: tuple[int, ...], heads: tuple[int, ...], sequences: int, seeds: int
) -> list[Run]:
    return [
        Run(
            kind="built",
            task=vote_task(dim) if name == "vote" else pair(dim),
            measure=Construction(name=name, heads=count, sequences=sequences),  # type: ignore[arg-type]
            seed=seed,
        )
        for dim, count, seed in product(dims, heads, range(seeds))
    ]


def _authors(
    dims: tuple[int, ...],
    heads: tuple[int, ...],
    sequences: int,
    seeds: int,
    at_eight: tuple[int, ...] = (),
) -> dict[str, list[Run]]:
    """The authors' draw, and the same as their script computes it; at d = 8 with more heads too."""
    return {
        draw: _built(f"random-features-{draw}", dims, heads, sequences, seeds)
        + _built(f"random-features-{draw}", (8,), at_eight, sequences, seeds)
        for draw in ("uniform-angle", "published")
    }


def _nearly_full(dims: tuple[int, ...], sequences: int) -> list[Run]:
    """The construction that is exact at rank d − 1, for even d."""
    return [
        run
        for dim in dims
        for run in _built("nearly-full-rank", (dim,), (dim + 1,), sequences, seeds=1)
    ]


def _trained(
    sizes: list[tuple[int, int]], training: Streaming, seeds: int, values: str = "scalar"
) -> list[Run]:
    return [
        Run(
            kind="tokens",
            task=pair(dim),
            net=AttentionNetShape(
                token_dim=dim,
                outputs=dim,
                layer=AttentionShape(heads=heads, qk_dim=1, v_dim=dim),
                values=values,  # type: ignore[arg-type]
            ),
            training=training,
            seed=seed,
        )
        for (dim, heads), seed in product(sizes, range(seeds))
    ]


def quick_parts() -> dict[str, list[Run]]:
    """d = 8 and 16, up to 2^11 random heads; layers of up to d heads are trained.

    Trained layers of d heads and the most random ones, which the answer rests on, have four seeds.
    """
    dims, training = (8, 16), Streaming(steps=1_500, rate=0.03, batch=256, validation=1 << 15)
    fewer = [(dim, heads) for dim in dims for heads in (dim // 4, dim // 2)]
    equal = [(dim, dim) for dim in dims]
    return {
        "random-features": _built("random-features", dims, (16, 64, 256, 1024), 1 << 13, 1)
        + _built("random-features", dims, (2048,), 1 << 13, seeds=4),
        "independent": _built("random-features-independent", dims, (64, 256, 1024), 1 << 13, 1),
        **_authors((8,), (64, 256, 1024), 1 << 13, 1),
        "trained": _trained(fewer, training, seeds=2) + _trained(equal, training, seeds=4),
        "nearly-full": _nearly_full((2, 4, 6), 1 << 10),
        "vote": _built("vote", dims, (64, 256, 1024, 4096), 1 << 12, 1),
    }


def standard_parts() -> dict[str, list[Run]]:
    """d up to 64, up to 2^12 random heads, at d = 8 the published 2^14; up to d heads are trained.

    Trained layers of d heads, which a claim rests on, have six seeds, others two.
    """
    dims, training = (8, 16, 32), Streaming(steps=5_000, rate=0.02, batch=512, validation=1 << 15)
    fewer = [(dim, heads) for dim in dims for heads in (1, dim // 4, dim // 2)]
    equal = [(dim, dim) for dim in dims]
    heads = (16, 64, 256, 1024, 4096)
    return {
        "random-features": _built("random-features", (*dims, 64), heads, 1 << 14, 2),
        "independent": _built("random-features-independent", (*dims, 64), heads, 1 << 14, 1),
        **_authors((*dims, 64), heads, 1 << 14, 1, at_eight=(16_384,)),
        "trained": _trained(fewer, training, seeds=2) + _trained(equal, training, seeds=6),
        "nearly-full": _nearly_full((2, 4, 6, 8), 1 << 12),
        "vote": _built("vote", (*dims, 64), (64, 256, 1024, 4096), 1 << 14, 2),
    }


def full_parts() -> dict[str, list[Run]]:
    """Up to 2^14 random heads, as published, and trained layers with full value matrices too."""
    dims, training = (8, 16, 32, 64), Streaming(steps=100_000, rate=0.01, validation=1 << 17)
    sizes = [(dim, heads) for dim in dims for heads in (1, dim // 4, dim // 2, dim, 2 * dim)]
    heads = tuple(2**power for power in range(4, 15))
    return {
        "random-features": _built("random-features", dims, heads, 1 << 16, 3),
        "independent": _built("random-features-independent", dims, heads, 1 << 16, 3),
        **_authors(dims, heads, 1 << 16, 3),
        "trained": _trained(sizes, training, seeds=5),
        "nearly-full": _nearly_full((2, 4, 6, 8, 10, 12), 1 << 14),
        "trained-general": _trained(sizes, training, seeds=5, values="factored"),
        "vote": _built("vote", dims, (64, 256, 1024, 4096), 1 << 16, 3),
    }


RANK_RANDOM_FEATURES = rank_study(
    "rank-random-features",
    tiers=(quick_parts, standard_parts, full_parts),
    parts={
        "random-features": "Random hard heads k = ±q, best weights",
        "independent": "Random hard heads, q and k independent, best weights",
        "trained": "Trained softmax heads, values a·I",
        "trained-general": "Trained softmax heads, any values",
        "uniform-angle": "Random hard heads, cosine of q and k uniform (the authors' draw)",
        "published": "The same, weights as the authors' script computes them",
        "nearly-full": "d + 1 heads of rank d − 1, built",
        "vote": "Two layers: majority vote",
    },
    published=claims.published,
    claims=(
        Claim(
            "No layer of rank-1 heads beats the lower bound",
            "headwise",
            claims.never_below_the_bound,
            exact=True,
        ),
        Claim("Trained layers come close to it at H = d", "headwise", claims.near_the_bound),
        Claim(
            "The closed form of random features is what is measured",
            "headwise",
            claims.closed_form_is_right,
            exact=True,
        ),
        Claim(
            "The published .13 at d = 8 is what the formula gives for keys that are too short",
            "headwise",
            claims.published_is_a_slip,
            exact=True,
        ),
        Claim(
            "d + 1 heads of rank d − 1 are exact for even d",
            "headwise",
            claims.nearly_full_rank_is_exact,
            exact=True,
        ),
        Claim(
            "A second layer goes below what one layer of as many heads can reach",
            "theorem 4",
            claims.depth_beats_the_bound,
            exact=True,
        ),
    ),
    figures=(
        Figure(
            name="heads",
            title="One layer of rank-1 heads: trained, random, and what is forbidden",
            caption="Error against heads for two orthogonal points; a panel a dimension. No layer "
            "can be below the bound for its kind of values.",
            panels={
                "random-features": "random features",
                "independent": "independent",
                "uniform-angle": "uniform angle",
                "trained": "trained",
                "trained-general": "trained",
            },
            x="heads",
            colour="part",
            x_log=True,
            facet="dim",
            references=claims.references,
        ),
        Figure(
            name="vote",
            title="A majority vote of two layers, and what one layer can reach",
            caption="Error against heads of a construction of two layers; the bound, dashed, is "
            "for one layer and does not hold for two.",
            panels={"vote": "vote"},
            x="heads",
            colour="dim",
            x_log=True,
            facet="dim",
            references=claims.one_layer_bound,
        ),
    ),
    finding=claims.finding,
    notes=(
        "Two orthogonal points and a query, uniform on the sphere; the target is the nearer point.",
        "Random features and the vote are built, run and measured on fresh sequences; the columns "
        "expected and standard_error hold the closed form and the noise of measuring.",
        f"The lower bound counts harmonics up to degree {claims.HIGHEST_DEGREE}.",
        "Published: the authors draw the angle of q and k with a uniform cosine, and their script "
        "leaves the keys shorter than one; the column expected holds what the formula says then, "
        "and the error is that of the layer.",
        "Standard: up to 2^12 random heads, at d = 8 with the authors' draw 2^14; trained layers "
        "of at most d heads, 5000 steps.",
        "Quick: d = 8 and 16 and up to 2^11 heads instead of d up to 64 and 2^14 heads; training "
        "takes 1500 steps.",
    ),
    setting=("dim", "points", "rank", "heads"),
    rows=("heads",),
    columns="dim",
)
