"""GPT-2 and Llama from the checkpoints of Hugging Face: `config.json` and safetensors, in one file or in shards.

    python examples/hf_models.py FOLDER [NUMBERS OF TOKENS ...]

Without a folder a small random checkpoint is written, read back, and asked for the next tokens. Nothing is downloaded:
`FOLDER` is what `git clone https://huggingface.co/openai-community/gpt2` gives.
"""

import json
import sys
import tempfile
from pathlib import Path

import genesis as torch
from genesis import nn
from genesis.nn import functional as F


class GPT2(nn.Module):
    """Radford et al. 2019, under the names of its checkpoints."""

    def __init__(self, config):
        super().__init__()
        width = config["n_embd"]
        self.wte, self.wpe = nn.Embedding(config["vocab_size"], width), nn.Embedding(config["n_positions"], width)
        self.h = nn.ModuleList([GPT2Block(config) for _ in range(config["n_layer"])])
        self.ln_f = nn.LayerNorm(width, config.get("layer_norm_epsilon", 1e-5))

    def forward(self, ids):  # (B, T) -> (B, T, vocabulary)
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)  # the head is the embedding


class GPT2Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, eps = config["n_embd"], config.get("layer_norm_epsilon", 1e-5)
        self.heads = config["n_head"]
        self.ln_1, self.ln_2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width), "c_proj": nn.Linear(width, width)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def forward(self, x):
        b, t, width = x.shape
        parts = self.attn["c_attn"](self.ln_1(x)).chunk(3, -1)
        q, k, v = (p.reshape(b, t, self.heads, width // self.heads).transpose(1, 2) for p in parts)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn["c_proj"](seen.transpose(1, 2).reshape(b, t, width))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Llama(nn.Module):
    """Touvron et al. 2023: rotary positions, root mean square norms, gated layers, keys shared by heads."""

    def __init__(self, config):
        super().__init__()
        width, words = config["hidden_size"], config["vocab_size"]
        self.embed_tokens = nn.Embedding(words, width)
        self.layers = nn.ModuleList([LlamaBlock(config) for _ in range(config["num_hidden_layers"])])
        self.norm = nn.RMSNorm(width, config["rms_norm_eps"])
        self.lm_head = nn.Linear(width, words, bias=False)
        if config.get("tie_word_embeddings"):
            self.lm_head.weight = self.embed_tokens.weight
        self.size, self.theta = head_size(config), config.get("rope_theta", 10000.0)

    def forward(self, ids):  # (B, T) -> (B, T, vocabulary)
        rates = self.theta ** (-torch.arange(0, self.size, 2) / self.size)
        angles = torch.outer(torch.arange(ids.shape[1]).float(), rates)  # (T, size / 2)
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin())
        return self.lm_head(self.norm(x))


def head_size(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def turned(x, cos, sin):
    """Each pair of numbers, which are half a head apart, turned by the angle of its place."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class LlamaBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner, eps = config["hidden_size"], config["intermediate_size"], config["rms_norm_eps"]
        self.size = head_size(config)
        many, few = config["num_attention_heads"] * self.size, config["num_key_value_heads"] * self.size

        def linear(inputs, outputs):
            return nn.Linear(inputs, outputs, bias=False)

        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(width, eps), nn.RMSNorm(width, eps)
        self.self_attn = nn.ModuleDict({"q_proj": linear(width, many), "k_proj": linear(width, few),
                                        "v_proj": linear(width, few), "o_proj": linear(many, width)})  # fmt: skip
        self.mlp = nn.ModuleDict(
            {"gate_proj": linear(width, inner), "up_proj": linear(width, inner), "down_proj": linear(inner, width)}
        )

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        h = self.input_layernorm(x)
        q, k, v = (self.self_attn[f"{name}_proj"](h).reshape(b, t, -1, self.size).transpose(1, 2) for name in "qkv")
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.self_attn["o_proj"](seen.transpose(1, 2).reshape(b, t, -1))
        h = self.post_attention_layernorm(x)
        return x + self.mlp["down_proj"](F.silu(self.mlp["gate_proj"](h)) * self.mlp["up_proj"](h))


MODELS = {"gpt2": (GPT2, "transformer."), "llama": (Llama, "model.")}  # and what checkpoints put before names
TURNED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # GPT-2 has these as (in, out)
BUFFERS = (".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq")  # masks and rates, which follow from the config


def weights_of(folder):
    """The tensors of a checkpoint, of one file or of all that its index names."""
    index = folder / "model.safetensors.index.json"
    files = ["model.safetensors"]
    if index.exists():
        files = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    return {name: x for file in files for name, x in torch.load(folder / file).items()}


def from_pretrained(folder):
    """The model of a folder with ``config.json`` and ``model.safetensors`` (or an index and shards), in float32."""
    folder = Path(folder)
    config = json.loads((folder / "config.json").read_text())
    kind, prefix = MODELS[config["model_type"]]
    model = kind(config)
    state = {}
    for name, x in weights_of(folder).items():
        if not name.endswith(BUFFERS):
            x = x.t() if kind is GPT2 and name.endswith(TURNED) else x
            state[name.removeprefix(prefix)] = x.float()
    if kind is GPT2 or config.get("tie_word_embeddings"):
        tied = state.pop("lm_head.weight", None)  # the embedding, where it is stored at all
        if kind is Llama:
            state["lm_head.weight"] = state["embed_tokens.weight"] if tied is None else tied
    model.load_state_dict(state)
    return model.eval()


@torch.no_grad()
def continued(model, ids, count=8):
    """The most probable numbers after those of ``ids``."""
    ids = torch.tensor([ids])
    for _ in range(count):
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], 1)
    return ids[0].tolist()


def write_random(folder):
    """A small Llama with random weights, as a checkpoint of two shards."""
    config = {"model_type": "llama", "vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
              "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5}  # fmt: skip
    state = {n if n.startswith("lm_head") else f"model.{n}": x for n, x in Llama(config).state_dict().items()}
    shards, weight_map = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"), {}
    for i, shard in enumerate(shards):
        part = dict(list(state.items())[i::2])
        torch.save(part, folder / shard)
        weight_map |= dict.fromkeys(part, shard)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


if __name__ == "__main__":
    torch.manual_seed(0)
    if len(sys.argv) > 1:
        print(continued(from_pretrained(sys.argv[1]), [int(n) for n in sys.argv[2:]] or [0]))
    else:
        with tempfile.TemporaryDirectory() as name:
            write_random(Path(name))
            print("the next tokens:", continued(from_pretrained(name), [3, 1, 4])[3:])
