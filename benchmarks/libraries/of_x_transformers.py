"""Models of x_transformers."""

import torch
from tools import add, ints
from x_transformers import Decoder, Encoder, TransformerWrapper, XTransformer

T = dict(num_tokens=50, max_seq_len=32)
for n, kw in {
    "plain": {},
    "rotary": dict(rotary_pos_emb=True),
    "alibi": dict(alibi_pos_bias=True, alibi_num_heads=2),
    "rel": dict(rel_pos_bias=True),
    "rms": dict(use_rmsnorm=True, ff_glu=True, ff_swish=True),
    "talking": dict(attn_pre_talking_heads=True, attn_post_talking_heads=True),
    "gqa": dict(attn_kv_heads=1),
    "flash": dict(attn_flash=True),
    "sandwich": dict(sandwich_coef=1),
    "macaron": dict(macaron=True),
    "xpos": dict(rotary_xpos=True),
    "topk": dict(attn_sparse_topk=4),
    "qknorm": dict(attn_qk_norm=True),
    "residual": dict(residual_attn=True),
    "gate": dict(gate_residual=True),
    "dyn": dict(dynamic_pos_bias=True),
    "shift": dict(shift_tokens=1),
    "one_kv": dict(attn_one_kv_head=True),
    "mem": dict(attn_num_mem_kv=4),
    "relu2": dict(ff_relu_squared=True),
    "hyper": dict(num_residual_streams=2),
}.items():
    add(
        "x_" + n,
        lambda kw=kw: (
            TransformerWrapper(**T, attn_layers=Decoder(dim=32, depth=2, heads=2, **kw)),
            (ints(50, 2, 16),),
        ),
    )
add(
    "x_enc",
    lambda: (
        TransformerWrapper(**T, attn_layers=Encoder(dim=32, depth=2, heads=2)),
        (ints(50, 2, 16),),
        {"mask": torch.ones(2, 16, dtype=torch.bool)},
    ),
)
add(
    "x_t5",
    lambda: (
        XTransformer(
            dim=32,
            enc_num_tokens=50,
            enc_depth=2,
            enc_heads=2,
            enc_max_seq_len=16,
            dec_num_tokens=50,
            dec_depth=2,
            dec_heads=2,
            dec_max_seq_len=16,
        ),
        (ints(50, 2, 16), ints(50, 2, 16)),
        {"mask": torch.ones(2, 16, dtype=torch.bool)},
    ),
)
