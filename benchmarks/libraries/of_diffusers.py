"""Models and schedules of diffusers."""

import diffusers
import torch
from tools import add, data, fill, fn

SMALL = {"layers_per_block": 1, "block_out_channels": (16, 32), "norm_num_groups": 8}
ATTENDING = {**SMALL, "cross_attention_dim": 8, "attention_head_dim": 4}

add(
    "diffusers_UNet2DModel",
    lambda: (
        diffusers.UNet2DModel(sample_size=16, in_channels=1, out_channels=1, attention_head_dim=8,
                              down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                              up_block_types=("AttnUpBlock2D", "UpBlock2D"), **SMALL),
        (data(2, 1, 16, 16), torch.tensor([1, 7])),
    ),
)  # fmt: skip
add(
    "diffusers_UNet2DConditionModel",
    lambda: (
        diffusers.UNet2DConditionModel(sample_size=8, in_channels=2, out_channels=2,
                                       down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                       up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), **ATTENDING),
        (data(2, 2, 8, 8), torch.tensor([1, 7]), data(2, 3, 8)),
    ),
)  # fmt: skip
add(
    "diffusers_ControlNetModel",
    lambda: (
        diffusers.ControlNetModel(in_channels=2, conditioning_channels=1, conditioning_embedding_out_channels=(4, 8),
                                  down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), **ATTENDING),
        (data(2, 2, 8, 8), torch.tensor([1, 7]), data(2, 3, 8), data(2, 1, 16, 16)),
    ),
)  # fmt: skip
add(
    "diffusers_AutoencoderKL",
    lambda: (
        diffusers.AutoencoderKL(in_channels=1, out_channels=1, latent_channels=2, block_out_channels=(16, 32), norm_num_groups=8,
                                down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2),
        (data(2, 1, 16, 16),),
    ),
)  # fmt: skip
add(
    "diffusers_VQModel",
    lambda: (
        diffusers.VQModel(in_channels=1, out_channels=1, latent_channels=4, num_vq_embeddings=16, block_out_channels=(16, 32), norm_num_groups=8,
                          down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2),
        (data(2, 1, 16, 16),),
    ),
)  # fmt: skip
add(
    "diffusers_DiTTransformer2DModel",
    lambda: (
        diffusers.DiTTransformer2DModel(num_attention_heads=2, attention_head_dim=8, in_channels=2, out_channels=2, num_layers=2,
                                        sample_size=8, patch_size=2, norm_num_groups=2, num_embeds_ada_norm=10),
        (data(2, 2, 8, 8), torch.tensor([1, 7]), torch.tensor([3, 4])),
    ),
)  # fmt: skip
add(
    "diffusers_Transformer2DModel",
    lambda: (
        diffusers.Transformer2DModel(num_attention_heads=2, attention_head_dim=8, in_channels=8, num_layers=1, norm_num_groups=4,
                                     cross_attention_dim=8),
        (data(2, 8, 4, 4), data(2, 3, 8)),
    ),
)  # fmt: skip


def sampled(kind: str) -> torch.Tensor:
    """An image by a schedule, from a fixed one."""
    model = torch.nn.Conv2d(1, 1, 3, padding=1)
    fill(model)
    schedule = getattr(diffusers, kind)(num_train_timesteps=100)
    schedule.set_timesteps(6)
    x = data(1, 1, 8, 8) * schedule.init_noise_sigma
    with torch.no_grad():
        for t in schedule.timesteps:
            x = schedule.step(model(schedule.scale_model_input(x, t)), t, x).prev_sample
    return x


for kind in ("DDIMScheduler", "EulerDiscreteScheduler", "DPMSolverMultistepScheduler", "PNDMScheduler", "HeunDiscreteScheduler",
             "LMSDiscreteScheduler", "UniPCMultistepScheduler", "DEISMultistepScheduler", "KDPM2DiscreteScheduler"):  # fmt: skip
    fn(f"diffusers_{kind}", lambda kind=kind: sampled(kind))
