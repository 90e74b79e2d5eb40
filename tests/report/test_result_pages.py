"""Pages of plans, compressions and witnesses, and the index's links, as data."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from headwise.allocation.plan_file import AllocationPlan
from headwise.build import frontier
from headwise.nets import AttentionShape
from headwise.report.build import report
from headwise.report.compression import charts
from headwise.report.constructions import frontier_panels
from headwise.report.plan import in_words
from headwise.report.result_page import page_of, write_page
from headwise.theory.head_count import phase_map
from page_samples import sample_compression, sample_finding


def test_the_name_of_a_file_is_no_address_of_its_own(tmp_path: Path) -> None:
    write_page(sample_finding(), tmp_path / "javascript:alert(1)#.html")
    assert 'href="javascript%3Aalert%281%29%23.html"' in report(tmp_path, all=True).read_text()


def test_a_plan_says_which_layer_gets_what() -> None:
    wide, narrow = (
        AttentionShape(heads=heads, qk_dim=64 // heads, v_dim=64 // heads) for heads in (2, 4)
    )
    layers = (wide, narrow, narrow)
    plan = AllocationPlan(
        width=64, length=8, layers=layers, budget=10**6, schedule="ours", reasons=()
    )
    assert in_words(plan) == "Heads × dimension: 2 × 32 in layer 0, 4 × 16 in layers 1–2"
    alike = replace(plan, layers=(wide,) * 3)
    assert in_words(alike) == "2 × 32 (heads × dimension) in every layer"
    assert page_of(plan).answer.startswith(in_words(plan))


def test_a_head_that_was_removed_has_its_place_in_the_map() -> None:
    drawn = next(iter(charts(sample_compression()).values())).to_dict()
    rows = pd.DataFrame(next(iter(drawn["datasets"].values())))
    assert len(rows) == 2 * 4  # all that the model had
    assert rows.loc[rows["head"] == 3, "qk_dim"].isna().all()


def test_a_phase_map_counts_only_the_cells_with_too_few_heads() -> None:
    found = phase_map((1, 4), (8, 512), intrinsic_dim=4, head_dim=2)
    assert "in 1 of these 2 cells the bound says nothing" in page_of(found).answer


def test_an_axis_of_few_errors_names_them() -> None:
    found = frontier(lengths=[16], errors=(0.1, 0.05))
    drawn = next(iter(frontier_panels(found).values())).to_dict()
    axis = drawn["layer"][0]["encoding"]["x"]
    assert axis["axis"]["values"] == [0.05, 0.1]
    assert axis["scale"]["domain"][0] > 0.1 > 0.05 > axis["scale"]["domain"][1]
