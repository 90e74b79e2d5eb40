"""Pretrained models: see what each head needs, shrink the attention, keep the quality, prove it."""

from headwise.pretrained.adapters import FAMILIES, attention_sites
from headwise.pretrained.allocate import Budget
from headwise.pretrained.calibration import Material
from headwise.pretrained.compress import Compressed, apply_plan, compress, make_plan
from headwise.pretrained.evaluate import Evaluation, evaluate
from headwise.pretrained.inspect import Inspection, inspect_model
from headwise.pretrained.io import from_pretrained, load_model, load_tokenizer, save_compressed
from headwise.pretrained.llama2c import convert_llama2c
from headwise.pretrained.material import image_material, text_material
from headwise.pretrained.measure import Measurement, measure
from headwise.pretrained.plan import Plan, read_plan, write_plan

__all__ = [
    "FAMILIES",
    "Budget",
    "Compressed",
    "Evaluation",
    "Inspection",
    "Material",
    "Measurement",
    "Plan",
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
