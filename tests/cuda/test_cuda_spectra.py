"""Fourier transforms by cuFFT, by a stand-in on the emulated device."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from fourier_stand_in import C2R, DTYPES, Cufft
from kernels_of import emulated, same

import genesis
from genesis.cuda.kernels.host import HostWarning
from genesis.cuda.libraries import cufft, loading

TOLERANCE = {"float32": 3e-5, "float64": 1e-12}


@pytest.fixture
def library():
    with emulated() as driver:
        made = Cufft(driver)
        with loading.standing_in(cufft=made):
            yield made


def number(*shape, dtype="float32", parts=False):
    genesis.manual_seed(3)
    kind = getattr(genesis, dtype)
    x = genesis.randn(*shape, dtype=kind)
    return genesis.complex(x, genesis.randn(*shape, dtype=kind)) if parts else x


CALLS = {  # a function of genesis.fft, a shape, whether it is complex, options
    "one": ("fft", (8,), True, {}),
    "real": ("fft", (5,), False, {}),
    "rows": ("fft", (3, 6), True, {"norm": "ortho"}),
    "columns": ("fft", (6, 3), True, {"dim": 0}),
    "a dimension in the middle": ("ifft", (2, 5, 3), True, {"dim": 1}),
    "cut": ("fft", (3, 9), True, {"n": 4}),
    "filled": ("ifft", (3, 4), True, {"n": 7, "norm": "forward"}),
    "two": ("fft2", (2, 4, 5), True, {}),
    "two apart": ("fft2", (4, 3, 5), True, {"dim": (0, 2)}),
    "two in front": ("ifft2", (4, 5, 3), True, {"dim": (1, 0)}),
    "four": ("fftn", (2, 3, 4, 5), True, {}),
    "five of six": ("ifftn", (2, 3, 2, 2, 3, 2), True, {"dim": (0, 1, 2, 4, 5), "norm": "ortho"}),
    "half": ("rfft", (3, 8), False, {}),
    "half of odd": ("rfft", (3, 7), False, {"norm": "forward"}),
    "half of columns": ("rfft", (5, 3), False, {"dim": 0}),
    "half in the middle": ("rfft", (2, 6, 3), False, {"dim": 1}),
    "half of two": ("rfft2", (2, 4, 6), False, {"norm": "ortho"}),
    "half of three": ("rfftn", (3, 4, 5), False, {"s": (2, 6, 4)}),
    "back": ("irfft", (3, 5), True, {}),
    "back to odd": ("irfft", (3, 5), True, {"n": 9}),
    "back to one": ("irfft", (3, 5), True, {"n": 1}),
    "back to two": ("irfft", (3, 5), True, {"n": 2}),
    "back in the middle": ("irfft", (2, 5, 3), True, {"dim": 1, "norm": "ortho"}),
    "back of two": ("irfft2", (2, 4, 5), True, {}),
    "back of three": ("irfftn", (3, 4, 5), True, {"norm": "forward"}),
    "hermitian": ("hfft", (2, 5), True, {}),
    "hermitian of two": ("hfft2", (2, 4, 5), True, {"norm": "ortho"}),
    "its inverse": ("ihfft", (2, 6), False, {}),
    "its inverse of two": ("ihfft2", (2, 4, 6), False, {}),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CALLS)
def test_transforms_are_those_of_the_cpu(name, dtype, library):
    function, shape, parts, options = CALLS[name]
    x = number(*shape, dtype=dtype, parts=parts)
    for _ in range(2):
        same(lambda x: getattr(genesis.fft, function)(x, **options), x, tolerance=TOLERANCE[dtype])
    assert library.done and len(library.plans) * 2 <= len(library.done)  # made once


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CALLS)
def test_gradients_of_transforms(name, dtype, library):
    function, shape, parts, options = CALLS[name]

    def gradient(x):
        x = x.detach().requires_grad_()
        y = getattr(genesis.fft, function)(x, **options)
        weight = genesis.arange(1.0, y.numel() + 1, dtype=x.real.dtype, device=x.device).reshape(y.shape)
        (genesis.view_as_real(y).square().sum(-1) if y.is_complex() else y.square()).mul(weight).sum().backward()
        return x.grad

    same(gradient, number(*shape, dtype=dtype, parts=parts), tolerance=3e-3 if dtype == "float32" else 1e-10)


@pytest.mark.parametrize("name", ["rows", "half of two", "back of two", "hermitian"])
def test_rules_hold_on_the_device(name, library):
    function, shape, parts, options = CALLS[name]
    x = number(*shape, dtype="float64", parts=parts).to("cuda").requires_grad_()
    assert genesis.autograd.gradcheck(lambda x: getattr(genesis.fft, function)(x, **options), (x,)) and library.done


def test_what_is_read_stays(library):
    """cuFFT overwrites half a spectrum that real numbers come from."""
    x = number(3, 5, parts=True).to("cuda")
    before = x.cpu()
    genesis.fft.irfft(x)
    genesis.fft.irfft2(x)
    assert x.cpu().equal(before) and {kind for kind, *_ in library.done} >= {C2R}


def test_operands_that_lie_otherwise(library):
    x = number(4, 6, 5, parts=True)
    for seen in (
        lambda x: x.transpose(0, 2), lambda x: x[::2, 1:, :3], lambda x: x[:, :1].expand(4, 6, 5), lambda x: x.permute(1, 2, 0),
    ):  # fmt: skip
        for dim in (0, 1, 2, -1):
            same(lambda x, dim=dim, seen=seen: genesis.fft.fft(seen(x), dim=dim), x, tolerance=3e-5)
        same(lambda x, seen=seen: genesis.fft.fft2(seen(x)), x, tolerance=3e-5)


def test_real_numbers_that_begin_anywhere(library):
    """They are read as if they were complex: from multiples of eight bytes on."""
    x = number(30)
    for first in (0, 1, 2, 3):
        same(lambda x, first=first: genesis.fft.rfft(x[first : first + 24].view(4, 6)), x, tolerance=3e-5)


def test_nothing_is_copied_that_cufft_can_read(library, monkeypatch):
    copies = []
    real = cufft.with_last
    monkeypatch.setattr(cufft, "with_last", lambda *args: copies.append(args) or real(*args))
    x = number(4, 6, 5, parts=True).to("cuda")
    genesis.fft.fft(x), genesis.fft.fft(x, dim=0), genesis.fft.fft2(x, dim=(0, 2)), genesis.fft.fftn(x)
    (
        genesis.fft.fft(x[:, :, :4]),
        genesis.fft.rfft(number(4, 6).to("cuda")),
        genesis.fft.rfft(number(4, 6).to("cuda"), dim=0),
    )
    assert copies == []
    genesis.fft.fft(x, dim=1)
    assert len(copies) == 2


def test_a_compiled_function_records_it(library):
    w = number(5, 9, dtype="float32", parts=True)
    there = w.to("cuda")
    step = genesis.compile(lambda x, w: genesis.fft.irfft(genesis.fft.rfft(x) * w).relu())
    for _ in range(4):
        x = genesis.randn(5, 16)
        wanted = genesis.fft.irfft(genesis.fft.rfft(x) * w).relu()
        np.testing.assert_allclose(step(x.to("cuda"), there).cpu().numpy(), wanted.numpy(), rtol=1e-4, atol=1e-4)
    assert len(library.plans) == 2


def test_nothing_and_too_much(library):
    x = number(4).to("cuda")
    with pytest.raises(RuntimeError, match="a transform needs at least one point"):
        genesis.fft.fft(x, 0)
    with pytest.raises(RuntimeError, match="float16 is not transformed"):
        genesis.fft.fft(x.half())
    assert library.done == []


def test_a_transform_that_cufft_refuses_is_computed_by_the_cpu():
    with emulated() as driver:
        made = Cufft(driver, refused=(C2R,))
        with loading.standing_in(cufft=made):
            x = number(3, 5, parts=True)
            with pytest.warns(HostWarning, match="from_half_spectrum"):
                there = genesis.fft.irfft(x.to("cuda"))
            again = genesis.fft.irfft(x.to("cuda"))  # what was refused is not asked for again
            for y in (there, again):
                np.testing.assert_allclose(y.cpu().numpy(), genesis.fft.irfft(x).numpy(), rtol=1e-5, atol=1e-6)
            assert made.done == [] and made.plans == {} and "NOT_SUPPORTED" in cufft.refused["Ff"]


def test_without_the_library_the_cpu_computes():
    with emulated(), pytest.warns(HostWarning, match="fourier is computed by the CPU"):
        x = number(4, parts=True)
        np.testing.assert_allclose(genesis.fft.fft(x.to("cuda")).cpu().numpy(), genesis.fft.fft(x).numpy())


def test_names_and_numbers_are_those_of_the_package():
    """Where the package is installed: it can be imported without a GPU."""
    try:
        real = importlib.import_module("nvmath.bindings.cufft")
    except ImportError as error:
        pytest.skip(f"nvmath-python is not installed: {error}")
    names = {"fF": "R2C", "Ff": "C2R", "FF": "C2C", "dD": "D2Z", "Dd": "Z2D", "DD": "Z2Z"}
    assert {kinds: int(real.Type[name]) for kinds, name in names.items()} == cufft.TYPES
    assert {v: k for k, v in cufft.TYPES.items()} == DTYPES
    assert issubclass(real.cuFFTError, Exception)
    counts = {
        "create": 0, "destroy": 1, "set_auto_allocation": 2, "make_plan_many64": 11, "set_stream": 2, "set_work_area": 2,
        "get_version": 0, "exec_c2c": 4, "exec_z2z": 4, "exec_r2c": 3, "exec_d2z": 3, "exec_c2r": 3, "exec_z2d": 3,
    }  # fmt: skip
    for name, count in counts.items():
        said = getattr(real, name).__doc__.split("(", 1)[1].split(")")[0]
        assert len([a for a in said.split(",") if a.strip()]) == count, name
