"""Plans in which all layers have one shape, so that stock transformers may open the result.

Which shapes a stock configuration can express: Llama-like ones a number of heads (their head size
fixes RoPE's frequencies, which a reduced head no longer has); ViT, DeiT and DINOv2 a number of
heads and one size for queries, keys and values; the others none, because their head size is hidden
size / heads, or because a norm or a bias ties all heads of all layers together.
"""

from headwise.core.errors import require
from headwise.pretrained.adapters import FAMILIES, AttentionSite
from headwise.pretrained.measure.measurement import Measurement
from headwise.pretrained.plan.allocate import Budget, total
from headwise.pretrained.plan.counts import shape_cost
from headwise.pretrained.plan.cutting import cut_to
from headwise.pretrained.plan.plan_file import CompressionPlan
from headwise.pretrained.plan.shapes import LayerShape


def stock_reason(model_type: str) -> str | None:
    """Why stock transformers cannot open a uniform result of this family; None if it can."""
    if FAMILIES[model_type].uniform is not None:
        return None
    return (
        f"the {model_type} configuration cannot express fewer or smaller heads, so stock "
        "transformers could not open a uniform result: leave uniform out (fast gives each layer "
        "one head size); headwise.from_pretrained opens every result"
    )


def check_uniform(model_type: str, sites: list[AttentionSite]) -> None:
    """Refuse a model of which no uniform plan is for stock transformers."""
    shapes_there = {(s.heads, s.kv_heads, s.head_dim, s.hidden) for s in sites}
    require(
        len(shapes_there) == 1 and not any(site.cross for site in sites),
        "uniform is for models whose attention layers are all of one shape and one kind",
    )
    reason = stock_reason(model_type)
    require(reason is None, str(reason))


def opens_in_stock(plan: CompressionPlan) -> bool:
    """Whether the plan's result is an ordinary model that stock transformers opens."""
    uniform = plan.budget is not None and plan.budget.get("uniform")
    return bool(uniform) and stock_reason(plan.model["model_type"]) is None


def uniform_plan(measurement: Measurement, budget: Budget) -> CompressionPlan:
    """The one shape for all layers with the least predicted damage within the budget.

    The output bias that replaces the mean of what is cut off is not counted: half of the heads
    is half of the budget.
    """
    check_uniform(measurement.identity["model_type"], measurement.sites)
    limit = budget.fraction * total(measurement, budget.counts)
    best: tuple[float, tuple[LayerShape, ...]] | None = None
    for heads, qk_dim, v_dim in _candidates(measurement):
        shapes, damage = [], 0.0
        for site, curves in zip(measurement.sites, measurement.curves, strict=True):
            shape, loss = cut_to(site, curves, heads, qk_dim, v_dim)
            shapes.append(shape)
            damage += loss
        parts = zip(measurement.sites, shapes, measurement.reductions, strict=True)
        cost = sum(
            shape_cost(s, shape, r.weights, budget.counts, means=False) for s, shape, r in parts
        )
        if cost <= limit and (best is None or damage < best[0]):
            best = (damage, tuple(shapes))
    require(best is not None, f"no uniform shape keeps {100 * budget.fraction:.1f} % or less")
    assert best is not None
    return CompressionPlan(
        model=measurement.identity,
        method="fisher",
        layers=best[1],
        budget={"counts": budget.counts, "fraction": budget.fraction, "uniform": True},
        predicted_damage=best[0],
        seed=measurement.seed,
    )


def _candidates(measurement: Measurement) -> list[tuple[int, int, int]]:
    site, family = measurement.sites[0], measurement.identity["model_type"]
    counts = [count for count in range(1, site.kv_heads + 1) if _expressible(family, site, count)]
    sizes = FAMILIES[family].uniform == "sizes"
    dims = range(1, site.head_dim + 1) if sizes else (site.head_dim,)
    return [(count, dim, dim) for count in counts for dim in dims]


def _expressible(family: str, site: AttentionSite, count: int) -> bool:
    """Whether the stock configuration takes so many key heads: Llama's and Gemma's ask that heads
    divide the hidden size, though they say themselves how large a head is."""
    from huggingface_hub.errors import StrictDataclassError
    from transformers import AutoConfig

    heads = {"num_attention_heads": count * site.group_size, "num_key_value_heads": count}
    try:
        AutoConfig.for_model(family, hidden_size=site.hidden, head_dim=site.head_dim, **heads)
    except (ValueError, StrictDataclassError):
        return False
    return True
