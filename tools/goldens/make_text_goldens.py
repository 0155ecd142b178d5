#!/usr/bin/env python3
"""What other implementations say about text: make_text_goldens.py > tests/text/data/text_goldens.json

Pieces by the `tokenizers` library (as lengths in bytes), normal forms by Python's unicodedata. Characters are those of Unicode 14, the oldest
tables among the libraries involved."""
import json
import random
import sys
import unicodedata

from tokenizers import Regex, pre_tokenizers

PARTS = ["the ", " capital", "of", "\n", "\n\n", "  ", "\t", " \n ", "don't", "I'LL", "we've'd", "123", " 4567", "3.14", "def f(x):\n    return x", "camelCase HTTPServer",
         "你好", "世界，", "ひらがなカタカナ", "Привет", "é", "e\u0301", "😀", "👩‍👩‍👧", "٣٤", "\u00a0", "\u200d", "\u180e", "!?", "...", "/", "\r\n", "ﬁ", "Ǆ", "ß", "ſ",
         "_x_", "#include <a>", "{}[]", "''", "\u3000", "한국어", "ไทย", "Ⅷ", "½", "\u0085", "\u2028", "हिन्दी", "$5+3=8", "a\u0308b", "\u1f0d\u0345"]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK3 = ["\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
             "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
CODER = ["[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", "digits"]
NAMED = {"gpt-2": ["bytelevel"], "smollm": ["digits", "bytelevel"], "llama-bpe": [LLAMA3], "qwen2": [QWEN2], "qwen35": [QWEN35], "tekken": [TEKKEN], "gpt-4o": [GPT4O],
         "deepseek-v3": DEEPSEEK3, "deepseek-coder": CODER}
# Where Ruby's syntax differs from Perl's.
DIALECT = [r"\w+", r"[\w']+", r"\h+", r"[^\h]+", r"\s", r"[^\s]+", r"\S+", r"^.", r".$", r"\p{Han}+", r"\P{Han}+", r"[\p{Greek}\p{Thai}]+", r"\d{2}", r"a.b|.\r", r"\p{^L}", r"[]a]+", r"\b.", r"\w\b", r"\B.", r"\x{4f60}+|\x41", r"a{1,2}|\p{L}{2}"]


def step(kind):
    if kind == "digits":
        return pre_tokenizers.Digits(individual_digits=True)
    if kind == "bytelevel":
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return pre_tokenizers.Split(Regex(kind), "isolated")


def lengths(pre, text):
    return [len(text[begin:end].encode()) for _, (begin, end) in pre.pre_tokenize_str(text)]


def code_point(rng):
    return chr(rng.choice([rng.randint(32, 126), rng.randint(160, 0x2FF), rng.randint(0x300, 0x36F), rng.randint(0x370, 0x5FF), rng.randint(0x4E00, 0x4EFF), rng.randint(0x1100, 0x11FF), rng.randint(0xAC00, 0xADFF)]))


def texts(rng, count):
    out = ["", " ", "\n", "a"]
    while len(out) < count:
        out.append("".join(rng.choice(PARTS) for _ in range(rng.randint(1, 12))) + "".join(code_point(rng) for _ in range(rng.randint(0, 6))))
    return [t for t in out if all(unicodedata.category(c) != "Cn" for c in t)]


def marks(rng):
    return "".join(chr(rng.choice([rng.randint(0x300, 0x34E), rng.randint(0x591, 0x5BD), rng.randint(0x1100, 0x11FF), rng.randint(0xAC00, 0xAC80), rng.randint(0xF900, 0xFA20),
                                   rng.randint(0xFB00, 0xFB06), rng.randint(0x3300, 0x33FF), rng.randint(0x1E00, 0x1EFF), rng.randint(0x900, 0x94D), 0x61, 0x212B, 0xFDFA, 0x1D15E])) for _ in range(rng.randint(1, 12)))


def main():
    rng = random.Random(7)
    samples = texts(rng, 120)
    out = {"texts": samples, "named": [], "patterns": [], "forms": []}
    for name, kinds in NAMED.items():
        pre = pre_tokenizers.Sequence([step(kind) for kind in kinds])
        out["named"].append({"name": name, "pieces": [lengths(pre, text) for text in samples]})
    for pattern in DIALECT:
        for behavior in ("isolated", "removed"):
            pre = pre_tokenizers.Split(Regex(pattern), behavior)
            out["patterns"].append({"pattern": pattern, "behavior": behavior, "pieces": [lengths(pre, text) for text in samples[:40]]})
    for text in samples + [marks(rng) for _ in range(200)]:
        out["forms"].append([text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFKC", text)])
    json.dump(out, sys.stdout, ensure_ascii=True, separators=(",", ":"))


if __name__ == "__main__":
    main()
