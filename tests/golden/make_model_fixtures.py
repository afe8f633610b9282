#!/usr/bin/env python3
"""Makes the model fixtures of this folder: small seeded models of every family and variant, and
what the reference implementation (transformers on torch) says about them.

    python3 -m venv venv && venv/bin/pip install torch transformers
    venv/bin/python make_model_fixtures.py [name ...]

Each fixture is a model folder under models/ as people have them (config.json, model.safetensors)
with one more file, expected.safetensors:

    prompt         [P] I64      token ids
    ids            [64] I64     what greedy decoding continues with
    prompt_logits  [P, V] F32   logits of every row of the prompt
    steps          [K] I64      decoding steps (step i chose ids[i]) whose logits follow
    step_logits    [K, V] F32

Logits are computed in f32 from the weights as stored. Two logits that compete for the first place
are kept apart (the seed is moved on until they are), so that ids cannot hang on the last bit.
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

HERE = Path(__file__).parent / "models"
NEW_TOKENS = 64
STEPS = [1, 16, 40, 63]
SMALLEST_GAP = 2e-3  # between the best and the second logit, anywhere in the text

LLAMA = dict(
    architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=32, intermediate_size=48,
    num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, vocab_size=97,
    max_position_embeddings=160, rms_norm_eps=1e-5, hidden_act="silu", tie_word_embeddings=False,
    bos_token_id=1, eos_token_id=2)


def variant(base, **changes):
    config = dict(base)
    config.update(changes)
    return config


MISTRAL = variant(LLAMA, architectures=["MistralForCausalLM"], model_type="mistral", head_dim=8,
                  num_key_value_heads=2, rope_theta=10000.0)
QWEN2 = variant(LLAMA, architectures=["Qwen2ForCausalLM"], model_type="qwen2", rms_norm_eps=1e-6,
                num_key_value_heads=2, rope_theta=1000000.0, use_sliding_window=False,
                sliding_window=None, max_window_layers=2)
QWEN3 = variant(LLAMA, architectures=["Qwen3ForCausalLM"], model_type="qwen3", rms_norm_eps=1e-6,
                num_key_value_heads=2, head_dim=12, attention_bias=False, use_sliding_window=False,
                sliding_window=None, max_window_layers=2)

# name: (stored type, config)
MODELS = {
    # Llama 2: no rope keys at all, as the first exporters wrote it.
    "llama2": ("f32", LLAMA),
    "llama3": ("bf16", variant(
        LLAMA, num_key_value_heads=2, num_hidden_layers=3, rope_theta=500000.0, rope_scaling=dict(
            rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
            original_max_position_embeddings=40))),
    "llama_linear": ("f32", variant(
        LLAMA, num_key_value_heads=1, max_position_embeddings=40, rope_theta=10000.0,
        rope_scaling=dict(type="linear", factor=4.0))),
    "llama_dynamic": ("f16", variant(
        LLAMA, num_key_value_heads=2, rope_theta=10000.0,
        rope_scaling=dict(type="dynamic", factor=2.0))),
    "llama_yarn": ("f32", variant(
        LLAMA, head_dim=16, num_key_value_heads=2, rope_parameters=dict(
            rope_type="yarn", rope_theta=10000.0, factor=4.0,
            original_max_position_embeddings=40))),
    "llama_yarn_mscale": ("f16", variant(
        LLAMA, head_dim=20, num_key_value_heads=1, rope_theta=50000.0, rope_scaling=dict(
            rope_type="yarn", factor=4.0, original_max_position_embeddings=40, beta_fast=24,
            beta_slow=2, mscale=1.2, mscale_all_dim=0.7))),
    "llama_biases": ("f32", variant(
        LLAMA, attention_bias=True, mlp_bias=True, num_key_value_heads=2, head_dim=10)),
    "thirteen_heads": ("f16", variant(
        LLAMA, num_attention_heads=13, num_key_value_heads=13, hidden_size=52)),
    "thirteen_heads_one_kv": ("bf16", variant(
        LLAMA, num_attention_heads=13, num_key_value_heads=1, hidden_size=39, head_dim=6,
        vocab_size=101)),
    "tinyllama": ("f16", variant(
        LLAMA, num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=2, hidden_size=48)),
    "smollm2": ("bf16", variant(
        LLAMA, num_hidden_layers=5, hidden_size=36, num_attention_heads=9, num_key_value_heads=3,
        tie_word_embeddings=True, rope_theta=100000.0, eos_token_id=[2, 7])),
    "mistral_window": ("f32", variant(MISTRAL, sliding_window=8)),
    "mistral_nemo": ("bf16", variant(MISTRAL, sliding_window=None, head_dim=14)),
    "qwen2": ("bf16", variant(QWEN2, tie_word_embeddings=True)),
    "qwen2_window": ("f16", variant(
        QWEN2, num_hidden_layers=3, use_sliding_window=True, sliding_window=12,
        max_window_layers=1)),
    "qwen3": ("f32", variant(
        QWEN3, rope_theta=1000000.0, tie_word_embeddings=True)),
    "qwen3_new_keys": ("bf16", variant(
        QWEN3, num_hidden_layers=3, use_sliding_window=True, sliding_window=20,
        layer_types=["full_attention", "sliding_attention", "full_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=1000000.0))),
}
TYPES = dict(f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16)


def make_weights(model, seed, stored):
    """Scales at which attention is sharp enough to depend on positions, and sums stay small."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, value in model.state_dict().items():
        noise = torch.randn(value.shape, generator=generator)
        if value.dim() == 2:
            scale = 1.0 if "embed" in name else 1.6 / value.shape[1] ** 0.5
            weights[name] = noise * scale
        elif name.endswith("bias"):
            weights[name] = noise * 0.3
        else:
            weights[name] = 1.0 + noise * 0.2
    if model.config.tie_word_embeddings:
        del weights["lm_head.weight"]
    return {name: value.to(TYPES[stored]).contiguous() for name, value in weights.items()}


@torch.no_grad()
def run_reference(folder, prompt):
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids, step_logits, gap = list(prompt), [], 1e9
    prompt_logits = model(torch.tensor([ids]), use_cache=False).logits[0]
    for _ in range(NEW_TOKENS):
        logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
        best = torch.topk(logits, 2).values
        gap = min(gap, float(best[0] - best[1]))
        step_logits.append(logits)
        ids.append(int(logits.argmax()))
    return prompt_logits, torch.stack(step_logits), ids[len(prompt):], gap


def make_fixture(name, number):
    stored, config = MODELS[name]
    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    blank = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    for seed in range(1000 * number, 1000 * number + 200):
        save_file(make_weights(blank, seed, stored), folder / "model.safetensors",
                  metadata={"format": "pt"})
        generator = torch.Generator().manual_seed(seed + 500)
        length = 30 + number
        prompt = torch.randint(3, config["vocab_size"], (length,), generator=generator).tolist()
        prompt_logits, step_logits, ids, gap = run_reference(folder, prompt)
        if gap >= SMALLEST_GAP and len(set(ids)) > 12:
            break
    else:
        raise SystemExit(f"{name}: no seed keeps the best two logits apart")
    save_file({
        "prompt": torch.tensor(prompt), "ids": torch.tensor(ids), "steps": torch.tensor(STEPS),
        "prompt_logits": prompt_logits.contiguous(),
        "step_logits": step_logits[STEPS].contiguous()}, folder / "expected.safetensors")
    print(f"{name}: seed {seed}, gap {gap:.4f}, {len(set(ids))} different ids, largest logit "
          f"{float(prompt_logits.abs().max()):.1f}")


if __name__ == "__main__":
    for number, name in enumerate(MODELS):
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            make_fixture(name, number)
