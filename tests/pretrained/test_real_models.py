"""Two real models, where HEADWISE_REAL_MODELS names what the benchmark `fetch_models.py` wrote."""

from pathlib import Path

import pytest
import torch
from small_models import shrunk

from headwise.pretrained import compress, load_model, load_tokenizer, measure_model, text_material

CASES = [
    ("stories15M", "stories.txt", "parameters", {0.9: 0.02, 0.75: 0.08, 0.5: 0.28}),
    ("stories15M", "stories.txt", "cache", {0.75: 0.09, 0.5: 0.40}),
    ("all-MiniLM-L6-v2", "wiki.txt", "parameters", {0.9: 0.002, 0.75: 0.011, 0.5: 0.08}),
]


@pytest.mark.parametrize(("name", "text", "counts", "bars"), CASES)
def test_quality_on_held_out_text(
    name: str, text: str, counts: str, bars: dict[float, float], real_models: Path
) -> None:
    model, tokenizer = load_model(real_models / name), load_tokenizer(real_models / name)
    material = text_material(model, tokenizer, real_models / text, tokens=16_000)
    measurement = measure_model(model, material)
    for fraction, bar in bars.items():
        result = shrunk(model, material, counts, fraction, measurement)
        assert result.evaluation.damage <= bar


def test_stories15m_still_tells_a_story_at_three_quarters(real_models: Path) -> None:
    model = load_model(real_models / "stories15M")
    tokenizer = load_tokenizer(real_models / "stories15M")
    material = text_material(model, tokenizer, real_models / "stories.txt", tokens=8_000)
    smaller = compress(model, text=material, keep=0.75, time_it=False).model
    prompt = tokenizer("Once upon a time, there was a little", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        ids = smaller.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=40, do_sample=False
        )
    story = tokenizer.decode(ids[0], skip_special_tokens=True)
    assert "named" in story
    assert len(set(story.split())) > 20
