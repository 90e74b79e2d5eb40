"""Every family that is known, by transformers' `model_type`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import nn

from headwise.pretrained.adapters.bart import bart_sites, clip_sites, gpt_neo_sites
from headwise.pretrained.adapters.base import AttentionSite
from headwise.pretrained.adapters.encoders import (
    bert_sites,
    dinov3_sites,
    distilbert_sites,
    esm_sites,
    mpnet_sites,
    vit_sites,
)
from headwise.pretrained.adapters.fused import (
    bloom_sites,
    falcon_sites,
    gpt_bigcode_sites,
    gpt_neox_sites,
    modernbert_sites,
    phi3_sites,
)
from headwise.pretrained.adapters.gpt2 import gpt2_sites
from headwise.pretrained.adapters.gptj import codegen_sites, gptj_sites
from headwise.pretrained.adapters.llama import llama_sites
from headwise.pretrained.adapters.t5 import t5_sites


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of model: where its attention lives, what it reads, what its configuration can say.

    `uniform` is what a stock configuration can express when all layers have one shape: a number of
    "heads", the same with a bias on all four projections ("biased heads"), a number of heads and
    their "sizes", or nothing (None) because the head size is fixed.
    `reads`: "text pairs" are one text for the encoder and one for the decoder; of a model that
    reads "batches" (pictures with captions) the user gives them, as a `Material`.
    """

    sites: Callable[[nn.Module], list[AttentionSite]]
    reads: Literal["text", "text pairs", "images", "sound", "batches"] = "text"
    uniform: Literal["heads", "biased heads", "sizes"] | None = None


def _all(names: str, family: Family) -> dict[str, Family]:
    return dict.fromkeys(names.split(), family)


_BIASED = "llama gemma gemma2 gemma3_text qwen3 qwen3_moe smollm3 granite granitemoe phimoe arcee"
_BIASED += " apertus olmo"
_PLAIN = "mistral mixtral ministral qwen2 qwen2_moe starcoder2 glm glm4 cohere cohere2"
_FIXED = "olmo2 olmo3 olmoe exaone4 helium ernie4_5 nemotron phi stablelm seed_oss"
_PAIRS = "bart mbart plbart marian pegasus m2m_100 blenderbot blenderbot-small"

FAMILIES: dict[str, Family] = {
    **_all(_BIASED, Family(sites=llama_sites, uniform="biased heads")),
    **_all(_PLAIN, Family(sites=llama_sites, uniform="heads")),
    **_all(f"{_FIXED} eurobert", Family(sites=llama_sites)),
    "phi3": Family(sites=phi3_sites),
    "gpt_neox": Family(sites=gpt_neox_sites),
    "falcon": Family(sites=falcon_sites),
    "gpt_bigcode": Family(sites=gpt_bigcode_sites),
    "bloom": Family(sites=bloom_sites),
    "gpt2": Family(sites=gpt2_sites),
    "gptj": Family(sites=gptj_sites),
    "codegen": Family(sites=codegen_sites),
    "gpt_neo": Family(sites=gpt_neo_sites),
    **_all("opt xglm biogpt", Family(sites=bart_sites)),
    **_all(_PAIRS, Family(sites=bart_sites, reads="text pairs")),
    **_all("t5 mt5 umt5", Family(sites=t5_sites, reads="text pairs")),
    **_all("bert roberta xlm-roberta xlm-roberta-xl camembert electra", Family(sites=bert_sites)),
    **_all("data2vec-text ernie megatron-bert layoutlm", Family(sites=bert_sites)),
    "esm": Family(sites=esm_sites),
    "distilbert": Family(sites=distilbert_sites),
    "mpnet": Family(sites=mpnet_sites),
    "modernbert": Family(sites=modernbert_sites),
    **_all("vit deit dinov2", Family(sites=vit_sites, reads="images", uniform="sizes")),
    **_all("dinov2_with_registers vit_msn", Family(sites=vit_sites, reads="images")),
    "dinov3_vit": Family(sites=dinov3_sites, reads="images"),
    **_all("clip_vision_model siglip_vision_model", Family(sites=clip_sites, reads="images")),
    **_all("clip_text_model siglip_text_model", Family(sites=clip_sites)),
    **_all("clip siglip siglip2", Family(sites=clip_sites, reads="batches")),
    **_all("whisper wav2vec2 hubert", Family(sites=bart_sites, reads="sound")),
    "audio-spectrogram-transformer": Family(sites=vit_sites, reads="sound"),
}
