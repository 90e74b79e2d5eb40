"""A small random language model on bytes, for benchmarks that need a checkpoint and no quality."""

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers


def write_byte_model(folder: Path, width: int, heads: int, length: int) -> None:
    """A GPT-2 of two layers with a tokenizer of bytes."""
    names = {name: number for number, name in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    core = Tokenizer(models.BPE(vocab=names, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    transformers.PreTrainedTokenizerFast(tokenizer_object=core).save_pretrained(folder)
    config = transformers.GPT2Config(
        n_embd=width, n_layer=2, n_head=heads, vocab_size=256, n_positions=length
    )
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
