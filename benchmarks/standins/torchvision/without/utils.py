"""Pictures of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image


def make_grid(tensor: Any, nrow: int = 8, padding: int = 2, normalize: bool = False, **options: Any) -> Any:
    pictures = list(tensor)
    if normalize:
        low, high = tensor.min(), tensor.max()
        pictures = [(p - low) / (high - low) for p in pictures]
    rows = [torch.cat(pictures[i : i + nrow], 2) for i in range(0, len(pictures), nrow)]
    return torch.cat([r for r in rows if r.shape == rows[0].shape], 1)


def save_image(tensor: Any, fp: Any, nrow: int = 8, **options: Any) -> None:
    grid = make_grid(tensor if tensor.dim() == 4 else tensor[None], nrow, normalize=options.get("normalize", False))
    values = np.asarray(grid.detach().mul(255).clamp(0, 255).cpu()).astype(np.uint8)
    Image.fromarray(values.transpose(1, 2, 0).squeeze()).save(fp)
