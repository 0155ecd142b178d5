#!/usr/bin/env python3
"""Ids of random texts by the `tokenizers` library: make_tokenizer_goldens.py TOKENIZER_JSON > tests/weights/data/tokenizer_goldens.json"""
import json
import random
import sys

from tokenizers import Tokenizer

PARTS = ["the ", " capital", "of", "\n", "\n\n", "  ", "\t", " \n ", "don't", "I'LL", "123", " 4567", "3.14", "def f(x):\n    return x", "你好", "世界，", "Привет", "é", "e\u0301",
         "😀", "👩‍👩‍👧", "٣٤", "\u00a0", "\u200d", "!?", "...", "<|im_end|>", "<|endoftext|>", "a" * 20, "\r\n", "ﬁ", "Ǆ", "ß", "_x_", "#include <a>", "{}[]", "''", "\u3000", "한국어", "ไทย"]


def text(rng):
    out = "".join(rng.choice(PARTS) for _ in range(rng.randint(0, 12)))
    return out + "".join(chr(rng.choice([rng.randint(32, 126), rng.randint(160, 0x2FF), rng.randint(0x400, 0x5FF), rng.randint(0x4E00, 0x4EFF)])) for _ in range(rng.randint(0, 6)))


def main():
    tokenizer = Tokenizer.from_file(sys.argv[1])
    rng = random.Random(1)
    texts = [text(rng) for _ in range(300)]
    json.dump([{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in texts], sys.stdout, ensure_ascii=True, indent=0)


main()
