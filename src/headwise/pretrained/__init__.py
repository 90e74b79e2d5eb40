"""Pretrained models: see what each head needs, shrink the attention, keep the quality, prove it."""

from headwise.pretrained.adapters import FAMILIES, attention_sites
from headwise.pretrained.compress import Compressed, apply_plan, compress, make_plan
from headwise.pretrained.evaluate import Evaluation, evaluate
from headwise.pretrained.inspect import Inspection, inspect_model
from headwise.pretrained.measure.measurement import Measurement, measure
from headwise.pretrained.model.files import (
    from_pretrained,
    load_model,
    load_tokenizer,
    save_compressed,
)
from headwise.pretrained.model.llama2c import convert_llama2c
from headwise.pretrained.plan.allocate import Budget
from headwise.pretrained.plan.plan_file import CompressionPlan, read_plan, write_plan
from headwise.pretrained.text.calibration import Material
from headwise.pretrained.text.material import image_material, text_material

__all__ = [
    "FAMILIES",
    "Budget",
    "Compressed",
    "CompressionPlan",
    "Evaluation",
    "Inspection",
    "Material",
    "Measurement",
    "apply_plan",
    "attention_sites",
    "compress",
    "convert_llama2c",
    "evaluate",
    "from_pretrained",
    "image_material",
    "inspect_model",
    "load_model",
    "load_tokenizer",
    "make_plan",
    "measure",
    "read_plan",
    "save_compressed",
    "text_material",
    "write_plan",
]
