"""Pretrained models: see what each head needs, shrink the attention, keep the quality, prove it."""

from headwise.pretrained._compress import compress
from headwise.pretrained._evaluate import Evaluation, evaluate
from headwise.pretrained._inspect import inspect
from headwise.pretrained.adapters import (
    FAMILIES,
    AttentionSite,
    Family,
    Projection,
    QKNorm,
    attention_sites,
    register_family,
)
from headwise.pretrained.compressed import Compressed
from headwise.pretrained.inspection import Inspection
from headwise.pretrained.measure.measurement import Measurement, measure_model
from headwise.pretrained.model.llama2c import convert_llama2c
from headwise.pretrained.model.opening import from_pretrained, load_model, load_tokenizer
from headwise.pretrained.model.smaller import apply_plan
from headwise.pretrained.plan.allocate import Budget
from headwise.pretrained.plan.make import make_plan
from headwise.pretrained.plan.plan_file import CompressionPlan, read_plan, write_plan
from headwise.pretrained.text.calibration import Material
from headwise.pretrained.text.images import image_material
from headwise.pretrained.text.material import text_material
from headwise.pretrained.text.sound import sound_material

__all__ = [
    "FAMILIES",
    "AttentionSite",
    "Budget",
    "Compressed",
    "CompressionPlan",
    "Evaluation",
    "Family",
    "Inspection",
    "Material",
    "Measurement",
    "Projection",
    "QKNorm",
    "apply_plan",
    "attention_sites",
    "compress",
    "convert_llama2c",
    "evaluate",
    "from_pretrained",
    "image_material",
    "inspect",
    "load_model",
    "load_tokenizer",
    "make_plan",
    "measure_model",
    "read_plan",
    "register_family",
    "sound_material",
    "text_material",
    "write_plan",
]
