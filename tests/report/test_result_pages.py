"""Pages of plans, compressions and witnesses, and the index's links, as data."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import vl_convert

from headwise.allocation.plan_file import AllocationPlan
from headwise.build import frontier, retrieval, witness
from headwise.nets import AttentionShape, ClassTokenNet, ClassTokenShape
from headwise.report.build import report
from headwise.report.compression import bars, charts
from headwise.report.constructions import frontier_panels
from headwise.report.pages.content import PageTable
from headwise.report.plan import in_words
from headwise.report.result_page import page_of, write_page
from headwise.theory.head_count import phase_map
from model_samples import sample_compression, sample_inspection
from page_samples import TASK, sample_finding


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


def test_the_numbers_of_thirty_layers_stand_apart() -> None:
    sample = sample_compression()
    layers = [sample.plan.layers[index % 2] for index in range(30)]
    deep = replace(sample, plan=replace(sample.plan, layers=layers))
    for figure in bars(deep).values():
        drawn = ElementTree.fromstring(vl_convert.vegalite_to_svg(figure.to_dict()))
        texts = drawn.iter("{http://www.w3.org/2000/svg}text")
        labels = [each for each in texts if (each.text or "").isdigit() and _side(each) > 0]
        shown = [each for each in labels if each.get("opacity", "1") != "0"]
        places = [_side(each) for each in shown]
        assert len(shown) >= 10
        assert min(right - left for left, right in pairwise(places)) > 14  # two digits and a gap


def _side(label: ElementTree.Element) -> float:
    """How far to the right a label stands; those of the other axis stand left of it."""
    return float(re.findall(r"-?[\d.]+", label.get("transform", "0"))[0])


def test_a_phase_map_counts_only_the_cells_with_too_few_heads() -> None:
    found = phase_map((1, 4), (8, 512), intrinsic_dim=4, head_dim=2)
    assert "in 1 of these 2 cells the bound says nothing" in page_of(found).answer


def test_an_axis_of_few_errors_names_them() -> None:
    found = frontier(lengths=[16], errors=(0.1, 0.05))
    drawn = next(iter(frontier_panels(found).values())).to_dict()
    axis = drawn["layer"][0]["encoding"]["x"]
    assert axis["axis"]["values"] == [0.05, 0.1]
    assert axis["scale"]["domain"][0] > 0.1 > 0.05 > axis["scale"]["domain"][1]


def test_words_begin_at_the_left_and_numbers_end_at_the_right() -> None:
    rows = [["1", "0.5 to 0.7", "gated", ""], ["2", "one seed", "plain", ""], ["3", "1e-3", "", ""]]
    table = PageTable("of", ["heads", "95 % interval", "variant", "published"], rows)
    assert table.worded == [False, False, True, False]
    assert PageTable("nothing", ["a", "b"], []).worded == [False, False]


def test_the_data_of_a_pair_are_all_that_its_figure_shows() -> None:
    net = ClassTokenNet(ClassTokenShape.standard(token_dim=2, heads=1), seed=0)
    found = witness(net, TASK, steps=5, starts=4)
    page = page_of(found)
    rows = page.figures[0].drawn.data
    assert rows.to_csv(index=False) == page.csv
    targets = rows[rows["of"] == "target"]["value"].tolist()
    assert targets == [float(each) for each in found.targets]
    after = rows[rows["of"] == "after attention"]
    assert after["value"].tolist() == [float(v) for row in found.representations for v in row]
    tokens = rows[rows["of"] == "token"]["value"]
    assert tokens.tolist() == [*found.first.flatten().tolist(), *found.second.flatten().tolist()]


def test_a_figure_of_a_built_network_saves_its_attention() -> None:
    built = retrieval(TASK, error=0.1)
    assert page_of(built).figures[0].drawn.data.equals(built.attention())


def test_a_legend_is_the_pages_where_several_lines_need_names() -> None:
    page = page_of(sample_inspection(layers=3))
    for figure in page.figures:
        assert [swatch.value for swatch in figure.drawn.legend] == ["0", "1", "2"]
        on_page, in_print = next(iter(figure.drawn.panels.values())), figure.drawn.chart
        assert "hidden" in str(on_page.to_dict()["layer"])
        assert "hidden" not in str(in_print.to_dict()["layer"])
    alone = page_of(sample_inspection(layers=1))
    assert all(figure.drawn.legend == () for figure in alone.figures)
