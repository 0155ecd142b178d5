"""The tree keeps its plan (docs/architecture.md): layers, READMEs, no model family in the code."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEVELS = {
    "base": 0, "tensor": 1, "net": 1, "text": 1, "kvcache": 1, "kernels": 2, "weights": 2, "api": 2, "hub": 2, "transfer": 2, "control": 2,
    "model": 3, "sched": 3, "exec": 4, "sim": 4, "cluster": 4, "engine": 5, "gateway": 5, "server": 6, "snapshot": 6, "platform": 6, "app": 7,
}
SOURCES = sorted(path for pattern in ("*.h", "*.cc", "*.cu", "*.cuh") for path in (ROOT / "src").rglob(pattern))
FAMILIES = re.compile(r"llama|qwen|mistral|mixtral|deepseek|chatglm|baichuan|smollm|gemma|falcon|stablelm|olmo|gpt[-_]?(2|j|neo|oss)", re.IGNORECASE)
# Values that file formats define: GGUF's tokenizer model and pre-tokenizer names.
FORMAT_VALUES = {"src/text/pre_tokenizer.cc", "src/weights/gguf_vocab.cc"}


def folder(path):
    return path.relative_to(ROOT / "src").parts[0]


def test_every_folder_has_a_level_and_a_readme():
    assert SOURCES
    for name in sorted({folder(path) for path in SOURCES}):
        assert name in LEVELS, f"src/{name} is not in the plan"
        assert (ROOT / "src" / name / "README.md").exists(), f"src/{name} has no README.md"


def test_includes_go_only_downwards():
    wrong = []
    for path in SOURCES:
        own = folder(path)
        for target in re.findall(r'#include "(\w+)/', path.read_text()):
            if target != own and target in LEVELS and LEVELS[target] >= LEVELS[own]:
                wrong.append(f"{path.relative_to(ROOT)} includes {target}")
    assert not wrong, "\n".join(wrong)


def test_no_model_family_is_named_in_the_code():
    wrong = []
    for path in SOURCES:
        name = str(path.relative_to(ROOT))
        if name in FORMAT_VALUES:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = re.sub(r"//.*", "", line)  # comments may say where a method comes from
            if FAMILIES.search(code):
                wrong.append(f"{name}:{number}: {line.strip()}")
    assert not wrong, "\n".join(wrong)


def test_every_source_file_is_one_that_a_reader_can_hold():
    too_long = [str(path.relative_to(ROOT)) for path in SOURCES if path.read_text().count("\n") > 600]
    assert not too_long, too_long
