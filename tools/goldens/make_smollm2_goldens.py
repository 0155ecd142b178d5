#!/usr/bin/env python3
"""Ids by the `tokenizers` library with SmolLM2's vocabulary: make_smollm2_goldens.py MODEL_GGUF > tests/text/data/smollm2_goldens.json

The vocabulary is read by the `gguf` package; the pipeline (digits, then ByteLevel) is that of the model's tokenizer.json."""
import json
import random
import sys

import gguf
from make_text_goldens import texts
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers


def main():
    fields = gguf.GGUFReader(sys.argv[1]).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(line.split(" ")) for line in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    types = fields["tokenizer.ggml.token_type"].contents()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token, kind in zip(tokens, types) if kind == 3])
    rng = random.Random(11)
    samples = texts(rng, 200) + ["<|im_start|>user\nWhat is 2+2?<|im_end|>\n", "x" * 500, " " * 300 + "y"]
    json.dump([[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in samples], sys.stdout, ensure_ascii=True, separators=(",", ":"))


main()
