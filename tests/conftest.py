"""Shapes in the types are checked wherever a test goes.

Modules of specifications are left out: their constructors check values themselves, with a
sentence, and the type checker would come first. So is `pretrained.model.attention`, because
torch.compile cannot trace the checks.
"""

import os

from jaxtyping import install_import_hook

from headwise.core.cache import cache_folder

# Some virtual machines announce AMX and do not grant it: products of bfloat16 then end the process
# ("Illegal instruction"), torch's own included. Without AMX they are computed as elsewhere.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

# Tests that have a cache of their own, and their worker processes, need not compile kernels anew.
os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))

CHECKED = [
    "headwise.nets",
    "headwise.tasks",
    "headwise.build",
    "headwise.theory.allocation.profile",
    "headwise.theory.allocation.sweep",
    "headwise.theory.rank.harmonics",
    "headwise.pretrained.adapters",
    "headwise.pretrained.measure",
    "headwise.pretrained.model.apply",
    "headwise.pretrained.model.stock",
    "headwise.pretrained.plan.reductions",
    "headwise.allocation.cut",
    "headwise.advise.probe.samples.prepare",
    "headwise.advise.probe.counting",
    "headwise.advise.probe.descent.removal",
    "headwise.advise.probe.descent.network",
    "headwise.training._train",
    "headwise.training.adamw",
    "headwise.training.choices",
    "headwise.training.ensemble",
    "headwise.training.outcome",
    "headwise.training.samples",
    "headwise.training.schedule",
    "headwise.training.state",
    "headwise.training.stream",
    "headwise.training.text",
]
install_import_hook(CHECKED, "checked_shapes.check")
