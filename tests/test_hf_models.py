"""Checkpoints in the layout of Hugging Face are read into the models of `examples/hf_models.py`: against plain NumPy."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import genesis

FILE = Path(__file__).parent.parent / "examples" / "hf_models.py"
IDS = np.array([[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]])


@pytest.fixture(scope="module")
def hf():
    spec = importlib.util.spec_from_file_location("hf_models", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(shapes):
    rng = np.random.default_rng(0)
    return {name: (rng.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in shapes.items()}


def write(folder, config, weights, shards=1, dtype=genesis.float32):
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {name: genesis.tensor(w).to(dtype) for name, w in weights.items()}
    if shards == 1:
        genesis.save(tensors, folder / "model.safetensors")
        return
    names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    parts = {file: dict(list(tensors.items())[i::shards]) for i, file in enumerate(names)}
    for file, part in parts.items():
        genesis.save(part, folder / file)
    weight_map = {name: file for file, part in parts.items() for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v):
    """One head after the other, (T, size) each."""
    scores = q @ k.T / np.sqrt(q.shape[-1])
    scores[np.triu_indices(len(q), 1)] = -np.inf
    return softmax(scores) @ v


# ---- GPT-2

GPT2 = {"model_type": "gpt2", "vocab_size": 11, "n_positions": 8, "n_embd": 12, "n_layer": 2, "n_head": 3}


def gpt2_shapes(prefix):
    w = 12
    shapes = {"wte.weight": (11, w), "wpe.weight": (8, w), "ln_f.weight": (w,), "ln_f.bias": (w,)}
    for i in range(2):
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h.{i}.{norm}.weight": (w,), f"h.{i}.{norm}.bias": (w,)}
        for name, m, n in (
            ("attn.c_attn", w, 3 * w),
            ("attn.c_proj", w, w),
            ("mlp.c_fc", w, 4 * w),
            ("mlp.c_proj", 4 * w, w),
        ):
            shapes |= {f"h.{i}.{name}.weight": (m, n), f"h.{i}.{name}.bias": (n,)}
        shapes[f"h.{i}.attn.bias"] = (1, 1, 8, 8)  # the mask that old checkpoints have
    return {prefix + name: shape for name, shape in shapes.items()}


def gpt2(w, ids):
    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * w[f"{name}.weight"] + w[f"{name}.bias"]

    def conv(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
    for i in range(2):
        q, k, v = np.split(conv(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn"), 3, -1)
        heads = [attention(*(y[:, j : j + 4] for y in (q, k, v))) for j in (0, 4, 8)]
        x = x + conv(np.concatenate(heads, -1), f"h.{i}.attn.c_proj")
        h = conv(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        x = x + conv(h, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


@pytest.mark.parametrize("prefix", ["", "transformer."])
@pytest.mark.parametrize("shards", [1, 3])
def test_gpt2(hf, tmp_path, prefix, shards):
    weights = numbers(gpt2_shapes(prefix))
    write(tmp_path, GPT2, weights, shards)
    got = hf.from_pretrained(tmp_path)(genesis.tensor(IDS)).detach().numpy()
    plain = {name.removeprefix(prefix): w.astype(np.float64) for name, w in weights.items()}
    np.testing.assert_allclose(got, [gpt2(plain, ids) for ids in IDS], rtol=1e-4, atol=1e-4)


# ---- Llama

LLAMA = {"model_type": "llama", "vocab_size": 11, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "rope_theta": 500.0}  # fmt: skip


def llama_shapes(tied):
    shapes = {"model.embed_tokens.weight": (11, 16), "model.norm.weight": (16,)}
    for i in range(2):
        sizes = {"self_attn.q_proj": (16, 16), "self_attn.k_proj": (8, 16), "self_attn.v_proj": (8, 16), "self_attn.o_proj": (16, 16),
                 "mlp.gate_proj": (20, 16), "mlp.up_proj": (20, 16), "mlp.down_proj": (16, 20),
                 "input_layernorm": (16,), "post_attention_layernorm": (16,)}  # fmt: skip
        shapes |= {f"model.layers.{i}.{name}.weight": shape for name, shape in sizes.items()}
    return shapes if tied else shapes | {"lm_head.weight": (11, 16)}


def llama(w, ids, head):
    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w[f"model.{name}.weight"]

    def turned(x):  # (T, 4), as complex numbers
        angles = np.arange(len(x))[:, None] * 500.0 ** (-np.arange(0, 4, 2) / 4)
        z = (x[:, :2] + 1j * x[:, 2:]) * np.exp(1j * angles)
        return np.concatenate([z.real, z.imag], -1)

    x = w["model.embed_tokens.weight"][ids]
    for i in range(2):
        at = f"layers.{i}"
        h = norm(x, f"{at}.input_layernorm")
        q, k, v = (h @ w[f"model.{at}.self_attn.{n}_proj.weight"].T for n in "qkv")
        heads = []
        for j in range(4):
            shared = slice(j // 2 * 4, j // 2 * 4 + 4)  # two heads share keys and values
            heads.append(attention(turned(q[:, 4 * j : 4 * j + 4]), turned(k[:, shared]), v[:, shared]))
        x = x + np.concatenate(heads, -1) @ w[f"model.{at}.self_attn.o_proj.weight"].T
        h = norm(x, f"{at}.post_attention_layernorm")
        gate, up = (h @ w[f"model.{at}.mlp.{n}_proj.weight"].T for n in ("gate", "up"))
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[f"model.{at}.mlp.down_proj.weight"].T
    return norm(x, "norm") @ head.T


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16])
def test_llama(hf, tmp_path, tied, dtype):
    weights = numbers(llama_shapes(tied))
    write(tmp_path, {**LLAMA, "tie_word_embeddings": tied}, weights, 2, dtype)
    model = hf.from_pretrained(tmp_path)
    got = model(genesis.tensor(IDS)).detach().numpy()
    kept = {name: genesis.tensor(w).to(dtype).double().numpy() for name, w in weights.items()}
    head = kept["model.embed_tokens.weight" if tied else "lm_head.weight"]
    np.testing.assert_allclose(got, [llama(kept, ids, head) for ids in IDS], rtol=1e-4, atol=1e-4)
    assert len(hf.continued(model, [3, 1, 4], 3)) == 6


def test_a_missing_weight_is_named(hf, tmp_path):
    weights = numbers(llama_shapes(True))
    del weights["model.norm.weight"]
    write(tmp_path, {**LLAMA, "tie_word_embeddings": True}, weights)
    with pytest.raises(RuntimeError, match=r"norm\.weight"):
        hf.from_pretrained(tmp_path)
