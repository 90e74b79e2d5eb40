"""A stock Llama as a GGUF file, and what llama.cpp makes of it (`export.py --to gguf`).

The names and the order of rows within heads are those of llama.cpp's own converter. The vocabulary
is only counted: tokens go in and come out by their numbers.
"""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch


def write_gguf(model: Any, path: Path) -> None:
    """All weights as 32-bit floats."""
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _add_numbers_as_words(writer, config.vocab_size)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = tensor.float().numpy()
        if ".q_proj." in name:
            values = _pairs_together(values, config.num_attention_heads)
        if ".k_proj." in name:
            values = _pairs_together(values, config.num_key_value_heads)
        writer.add_tensor(names.get_name(name, (".weight", ".bias")), values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _pairs_together(rows: np.ndarray, heads: int) -> np.ndarray:
    """Coordinates that RoPE turns together side by side, which transformers keeps half a head
    apart."""
    apart = rows.reshape(heads, 2, -1, *rows.shape[1:])
    return np.ascontiguousarray(apart.swapaxes(1, 2)).reshape(rows.shape)


def _add_numbers_as_words(writer: Any, count: int) -> None:
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2]
    kinds += [gguf.TokenType.NORMAL] * (count - 3)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([f"t{number}" for number in range(count)])
    writer.add_token_scores([0.0] * count)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)


def largest_difference(model: Any, path: Path, ids: list[int], count: int = 50) -> float:
    """Of the log-probabilities of the likeliest next tokens, llama.cpp and transformers."""
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path = str(path)
    options.n_ctx, options.n_parallel, options.warmup = len(ids) + 8, 1, False
    options.cpuparams.n_threads = 1
    options.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    exact = xllamacpp.ggml_type.GGML_TYPE_F32  # its usual cache is of 16 bits: 7e-3 instead of 5e-4
    options.cache_type_k = options.cache_type_v = exact
    asked = {"prompt": ids, "max_tokens": 1, "logprobs": count, "temperature": 0.0}
    answer = xllamacpp.Server(options).handle_completions(asked)
    found = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0, -1]
    expected = torch.log_softmax(logits.float(), -1)
    best = expected.topk(count).indices.tolist()
    if len({each["id"] for each in found} & set(best)) < count // 2:
        return float("inf")
    return max(abs(each["logprob"] - float(expected[each["id"]])) for each in found)
