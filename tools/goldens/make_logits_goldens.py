#!/usr/bin/env python3
"""Golden logits from an independent reference (Hugging Face transformers, float32, CPU) for the tests of src/model and above.

    make_logits_goldens.py tests/model/data [SmolLM2-135M-Instruct.Q4_1.gguf]

Writes three tiny random models with their goldens, and smollm2_logits.json when the GGUF file is given. Layout: tests/model/data/README.md.
Needs torch, transformers, tokenizers, safetensors, gguf.
"""
import json
import os
import shutil
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

torch.set_num_threads(2)
torch.manual_seed(0)

TINY_TEXT = """The lamp in the hall burns all night, and the cat walks under it. A small test model needs a small test text:
numbers like 12, 345 and 2026, names like Ada and Bo, code like x = f(y) + 1, and a line or two that says the same again.
The cat walks in the hall, the lamp burns, the night is small. Bo says that Ada says that the test is a test.
"""
TINY_VOCAB = 320
CHAT_TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
                 "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
# Varied at first, then so regular that the model's greedy path has clear gaps.
SMOLLM2_TEXT = ("Once upon a time, in a small village near the sea, there lived a clockmaker. "
                "def mean(values):\n    return sum(values) / len(values)\n\n"
                "The alphabet: A B C D E F G H I J K L M N O P Q R S T U V W X Y Z. Again: A B C D E F G H I J K L M")


def rounded(value, digits=7):
    return float(f"{value:.{digits}g}")


def stats(logits, probe):
    """One position: logits [vocab] in float32 -> the numbers that are kept."""
    x = logits.double()
    top = torch.topk(x, 2)
    return {"logits": [rounded(v) for v in x[probe].tolist()], "argmax": int(top.indices[0]), "max": rounded(top.values[0].item()),
            "second": rounded(top.values[1].item()), "logsumexp": rounded(torch.logsumexp(x, 0).item())}


@torch.no_grad()
def goldens(model, prompt, probe, steps):
    """Every prompt position from one forward pass, then greedy steps, each recomputed from the whole sequence (no cache involved)."""
    out = {"prompt": prompt, "probe": probe}
    logits = model(input_ids=torch.tensor([prompt]), use_cache=False).logits[0]
    assert logits.dtype == torch.float32
    out["positions"] = [stats(row, probe) for row in logits]
    ids = list(prompt)
    out["greedy"] = []
    out["greedy_steps"] = []
    for _ in range(steps):
        row = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
        out["greedy_steps"].append(stats(row, probe))
        ids.append(out["greedy_steps"][-1]["argmax"])
        out["greedy"].append(ids[-1])
    return out


def min_gap(golden):
    return min(s["max"] - s["second"] for s in golden["greedy_steps"])


def write_json(path, value):
    with open(path, "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: " + (
            "[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in v) + "]"
            if isinstance(v, list) and v and isinstance(v[0], dict) else json.dumps(v, separators=(",", ":"))) for k, v in value.items()) + "\n}\n")


def write_tokenizer(folder):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(vocab_size=TINY_VOCAB, special_tokens=specials, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([TINY_TEXT] * 3, trainer)
    assert tokenizer.get_vocab_size() == TINY_VOCAB, tokenizer.get_vocab_size()
    tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    token = lambda text: {"content": text, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
        json.dump({"add_bos_token": False, "bos_token": token("<|im_start|>"), "eos_token": "<|im_end|>", "pad_token": None,
                   "chat_template": CHAT_TEMPLATE, "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 256}, f, indent=1)
    with open(os.path.join(folder, "generation_config.json"), "w") as f:
        json.dump({"bos_token_id": 1, "eos_token_id": [2, 0]}, f)
    return tokenizer


def random_weights(model, seed, std):
    """Values that bfloat16 and float16 both hold exactly, so that no reader's choice of type changes the model."""
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        value = torch.randn(tensor.shape, generator=generator) * std
        if "norm" in name:
            value = 1 + value
        if "embed_tokens" in name:
            value = value * 3
        value = value.to(torch.bfloat16).to(torch.float16).to(torch.bfloat16)
        assert torch.equal(value.float(), value.to(torch.float16).float())
        state[name] = value.float()
    return state


def save_weights(folder, state, dtype, shards):
    names = list(state)
    groups = [names[i::shards] for i in range(shards)]
    index = {"metadata": {"total_size": sum(v.numel() * torch.tensor([], dtype=dtype).element_size() for v in state.values())}, "weight_map": {}}
    for i, group in enumerate(groups):
        name = "model.safetensors" if shards == 1 else f"model-{i + 1:05}-of-{shards:05}.safetensors"
        save_file({n: state[n].to(dtype).contiguous() for n in group}, os.path.join(folder, name), metadata={"format": "pt"})
        os.chmod(os.path.join(folder, name), 0o644)
        index["weight_map"].update({n: name for n in group})
    if shards > 1:
        with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
            json.dump(index, f, indent=0, sort_keys=True)


COMMON = {"vocab_size": TINY_VOCAB, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "head_dim": 16, "hidden_act": "silu", "rms_norm_eps": 1e-5, "max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2,
          "initializer_range": 0.02, "attention_dropout": 0.0, "use_cache": True}
TINY = {
    # Tied, float32, the older layout of rope keys, Llama 3's frequency scaling with an original context that 40 tokens already exceed.
    "tiny_llama": {"config": {**COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "tie_word_embeddings": True, "rope_theta": 10000.0,
                              "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                               "original_max_position_embeddings": 32},
                              "attention_bias": False, "mlp_bias": False, "torch_dtype": "float32"},
                   "dtype": torch.float32, "shards": 1},
    # Untied, bfloat16, two shards.
    "tiny_llama_sharded": {"config": {**COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "tie_word_embeddings": False,
                                      "rope_theta": 10000.0, "rope_scaling": None, "attention_bias": False, "mlp_bias": False,
                                      "torch_dtype": "bfloat16", "num_key_value_heads": 1},
                           "dtype": torch.bfloat16, "shards": 2},
    # Bias on q, k and v, float16, the newer layout of rope keys, no head_dim key (hidden / heads).
    "tiny_qwen2": {"config": {**{k: v for k, v in COMMON.items() if k != "head_dim"}, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
                              "num_attention_heads": 2, "num_key_value_heads": 1, "tie_word_embeddings": True,
                              "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}, "use_sliding_window": False, "sliding_window": None,
                              "dtype": "float16", "rms_norm_eps": 1e-6},
                   "dtype": torch.float16, "shards": 1},
}


def make_tiny(folder, spec):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    tokenizer = write_tokenizer(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(spec["config"], f, indent=1)
    prompt = tokenizer.encode("Ada says that 12 cats walk in the hall, and the lamp burns: x = f(345) + 1. A test needs a night.").ids
    assert len(prompt) >= 40, len(prompt)
    prompt = prompt[:40]
    probe = sorted(np.random.RandomState(7).choice(TINY_VOCAB, 32, replace=False).tolist())
    kind = {"llama": LlamaConfig, "qwen2": Qwen2Config}[spec["config"]["model_type"]]
    skeleton = AutoModelForCausalLM.from_config(kind(**{k: v for k, v in spec["config"].items() if k not in ("torch_dtype", "dtype")}), attn_implementation="eager")
    skeleton = skeleton.float().eval()
    best = None
    for seed in range(1, 300):  # a greedy path with clear gaps, so that rounding decides no token, and some variety
        skeleton.load_state_dict(random_weights(skeleton, seed, 0.2), strict=False)
        golden = goldens(skeleton, prompt, probe, 16)
        score = min_gap(golden) if len(set(golden["greedy"])) >= 8 else -1
        if best is None or score > best[0]:
            best = (score, seed)
    save_weights(folder, random_weights(skeleton, best[1], 0.2), spec["dtype"], spec["shards"])
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    golden = {"model": os.path.basename(folder), "reference": "transformers float32", "min_greedy_gap": 0, **goldens(model, prompt, probe, 16)}
    golden["min_greedy_gap"] = rounded(min_gap(golden), 4)
    write_json(os.path.join(folder, "golden.json"), golden)
    print(folder, "seed", best[1], "min gap", golden["min_greedy_gap"], "greedy", golden["greedy"], "rope", model.model.rotary_emb.inv_freq.tolist())


def check_dequantised(model, path):
    """The reference must hold exactly what GGUF's own dequantisation gives (q and k rows are reordered by the loader)."""
    from gguf import GGUFReader, quants
    tensors = {t.name: t for t in GGUFReader(path).tensors}
    state = model.state_dict()
    pairs = {"blk.3.ffn_down.weight": "model.layers.3.mlp.down_proj.weight", "blk.7.attn_v.weight": "model.layers.7.self_attn.v_proj.weight",
             "token_embd.weight": "model.embed_tokens.weight", "blk.0.attn_q.weight": "model.layers.0.self_attn.q_proj.weight"}
    for ours, theirs in pairs.items():
        want = quants.dequantize(tensors[ours].data, tensors[ours].tensor_type)
        have = state[theirs].numpy()
        if "attn_q" in ours:  # GGUF keeps rotary pairs side by side: row (h, d, half) there is row (h, half, d) here
            heads = model.config.num_attention_heads
            want = want.reshape(heads, -1, 2, want.shape[1]).swapaxes(1, 2).reshape(want.shape)
        print("dequantised", ours, "largest difference", float(np.abs(want - have).max()))
        assert np.array_equal(want, have), ours


def make_smollm2(folder, path):
    model = AutoModelForCausalLM.from_pretrained(os.path.dirname(path), gguf_file=os.path.basename(path), dtype=torch.float32,
                                                 attn_implementation="eager").eval()
    check_dequantised(model, path)
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(os.path.dirname(path), gguf_file=os.path.basename(path))
    prompt = tokenizer.encode(SMOLLM2_TEXT, add_special_tokens=False)
    assert len(prompt) >= 64, len(prompt)
    prompt = prompt[-64:]
    vocab = model.config.vocab_size
    probe = sorted(np.random.RandomState(11).choice(vocab, 48, replace=False).tolist())
    golden = {"model": os.path.basename(path), "reference": "transformers float32 on the dequantised weights", "min_greedy_gap": 0,
              "prompt_text": tokenizer.decode(prompt), **goldens(model, prompt, probe, 32)}
    golden["min_greedy_gap"] = rounded(min_gap(golden), 4)
    write_json(os.path.join(folder, "smollm2_logits.json"), golden)
    print("smollm2 min gap", golden["min_greedy_gap"], repr(tokenizer.decode(golden["greedy"])))
    print("rope", model.model.rotary_emb.inv_freq[:3].tolist(), "eps", model.config.rms_norm_eps)


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for name, spec in TINY.items():
        make_tiny(os.path.join(out, name), spec)
    if len(sys.argv) > 2:
        make_smollm2(out, sys.argv[2])


if __name__ == "__main__":
    main()
