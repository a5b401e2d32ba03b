"""Models of vit_pytorch."""

import vit_pytorch
from tools import add, data

V = dict(image_size=32, patch_size=8, num_classes=10, dim=32, depth=2, heads=2, mlp_dim=64)


add("vit", lambda: (vit_pytorch.ViT(**V), (data(2, 3, 32, 32),)))
add("simple_vit", lambda: (vit_pytorch.SimpleViT(**V), (data(2, 3, 32, 32),)))


def vp(mod, cls, **kw):
    import importlib

    return getattr(importlib.import_module("vit_pytorch." + mod), cls)(**kw)


add("deepvit", lambda: (vp("deepvit", "DeepViT", **V), (data(2, 3, 32, 32),)))
add("cait", lambda: (vp("cait", "CaiT", **V, cls_depth=1), (data(2, 3, 32, 32),)))
add(
    "t2t",
    lambda: (
        vp(
            "t2t",
            "T2TViT",
            dim=32,
            image_size=32,
            depth=2,
            heads=2,
            mlp_dim=64,
            num_classes=10,
            t2t_layers=((7, 4), (3, 2), (3, 2)),
        ),
        (data(2, 3, 32, 32),),
    ),
)
add(
    "cct",
    lambda: (
        vp(
            "cct",
            "CCT",
            img_size=32,
            embedding_dim=32,
            n_conv_layers=2,
            num_layers=2,
            num_heads=2,
            mlp_ratio=2,
            num_classes=10,
        ),
        (data(2, 3, 32, 32),),
    ),
)
add(
    "crossvit",
    lambda: (
        vp(
            "cross_vit",
            "CrossViT",
            image_size=32,
            num_classes=10,
            depth=1,
            sm_dim=16,
            sm_patch_size=4,
            sm_enc_depth=1,
            sm_enc_heads=2,
            sm_enc_mlp_dim=32,
            lg_dim=32,
            lg_patch_size=8,
            lg_enc_depth=1,
            lg_enc_heads=2,
            lg_enc_mlp_dim=32,
            cross_attn_depth=1,
            cross_attn_heads=2,
        ),
        (data(2, 3, 32, 32),),
    ),
)
add(
    "pit",
    lambda: (
        vp("pit", "PiT", image_size=32, patch_size=8, dim=32, num_classes=10, depth=(1, 1), heads=2, mlp_dim=32),
        (data(2, 3, 32, 32),),
    ),
)
add(
    "cvt",
    lambda: (
        vp(
            "cvt",
            "CvT",
            num_classes=10,
            s1_emb_dim=16,
            s2_emb_dim=16,
            s3_emb_dim=16,
            s1_heads=1,
            s2_heads=1,
            s3_heads=1,
            s3_depth=1,
        ),
        (data(2, 3, 64, 64),),
    ),
)
# add("twins", lambda: (vp("twins_svt", "TwinsSVT", num_classes=10, s1_emb_dim=16, s2_emb_dim=16, s3_emb_dim=16, s4_emb_dim=16, s3_depth=1, s1_patch_size=4, s1_local_patch_size=4, s2_local_patch_size=2,s3_local_patch_size=2,s4_local_patch_size=1), (data(2, 3, 64, 64),)))
add(
    "mobile_vit",
    lambda: (
        vp(
            "mobile_vit",
            "MobileViT",
            image_size=(64, 64),
            dims=[24, 32, 40],
            channels=[8, 8, 16, 16, 24, 24, 32, 32, 40, 40, 48],
            num_classes=10,
        ),
        (data(1, 3, 64, 64),),
    ),
)
add(
    "max_vit",
    lambda: (
        vp("max_vit", "MaxViT", num_classes=10, dim_conv_stem=8, dim=16, dim_head=8, depth=(1, 1), window_size=4),
        (data(2, 3, 32, 32),),
    ),
)
add(
    "na_vit",
    lambda: (
        vp(
            "na_vit",
            "NaViT",
            image_size=32,
            patch_size=8,
            num_classes=10,
            dim=32,
            depth=2,
            heads=2,
            mlp_dim=64,
            token_dropout_prob=0.0,
        ),
        ([[data(3, 32, 32), data(3, 16, 32)], [data(3, 32, 16)]],),
    ),
)
add(
    "mae",
    lambda: (
        vp(
            "vit_3d",
            "ViT",
            image_size=16,
            frames=4,
            image_patch_size=8,
            frame_patch_size=2,
            num_classes=10,
            dim=32,
            depth=2,
            heads=2,
            mlp_dim=32,
        ),
        (data(1, 3, 4, 16, 16),),
    ),
)
