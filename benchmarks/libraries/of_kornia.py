"""Functions of kornia."""

import kornia
import torch
from tools import add, data


def kf(f, *shapes):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(3, 1, 1))

        def forward(self, x):
            return f(x * self.w)

    return M(), (data(2, 3, 16, 16).abs(),)


K = kornia
for n, f in {
    "gauss": lambda x: K.filters.gaussian_blur2d(x, (3, 3), (1.5, 1.5)),
    "sobel": lambda x: K.filters.sobel(x),
    "canny": lambda x: K.filters.canny(x)[0],
    "median": lambda x: K.filters.median_blur(x, (3, 3)),
    "bilateral": lambda x: K.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)),
    "lap": lambda x: K.filters.laplacian(x, 3),
    "hsv": lambda x: K.color.rgb_to_hsv(x),
    "lab": lambda x: K.color.rgb_to_lab(x),
    "yuv": lambda x: K.color.rgb_to_yuv(x),
    "gray": lambda x: K.color.rgb_to_grayscale(x),
    "rot": lambda x: K.geometry.transform.rotate(x, torch.tensor([30.0, 45.0])),
    "warp": lambda x: K.geometry.transform.warp_perspective(x, torch.eye(3)[None].repeat(2, 1, 1) + 0.01, (16, 16)),
    "pyr": lambda x: K.geometry.transform.pyrdown(x),
    "ssim": lambda x: K.metrics.ssim(x, x.roll(1, -1), 5),
    "psnr": lambda x: K.losses.psnr_loss(x, x.roll(1, -1), 1.0),
    "tv": lambda x: K.losses.total_variation(x),
    "eq": lambda x: K.enhance.equalize(x.clamp(0, 1)),
    "adj": lambda x: K.enhance.adjust_gamma(x.clamp(0, 1), 1.2),
    "harris": lambda x: K.feature.harris_response(x),
    "dilate": lambda x: K.morphology.dilation(x, torch.ones(3, 3)),
    "affine": lambda x: K.geometry.transform.warp_affine(x, torch.eye(3)[None, :2].repeat(2, 1, 1) + 0.05, (16, 16)),
    "dist": lambda x: K.contrib.distance_transform(x),
    "unsharp": lambda x: K.filters.unsharp_mask(x, (3, 3), (1.5, 1.5)),
    "hist": lambda x: K.enhance.histogram(x.flatten(1), torch.linspace(0, 1, 8), torch.tensor(0.1)),
    "elastic": lambda x: K.geometry.transform.elastic_transform2d(x, data(2, 2, 16, 16)),
}.items():
    add("k_" + n, lambda f=f: kf(f))
