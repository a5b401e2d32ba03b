"""cuFFT, cuSOLVER and cuBLAS as their callers in C see them, over the driver of `c_driver.py`: what ``nvmath-python`` hands over
goes to the stand-ins of the tests.
"""

import ctypes as c

from c_libraries import OUT, U64, answered, returned
from c_library import library
from factors_stand_in import Cublas, Cusolver
from fourier_stand_in import Cufft

INT, I64, SIZE = c.c_int, c.c_int64, c.c_size_t
OUT_I, OUT_SIZE, LIST = c.POINTER(INT), c.POINTER(SIZE), c.POINTER(c.c_longlong)
H, AT = U64, U64  # a handle, an address


def said(soname, folder, functions):
    told = library(soname, folder, list(functions))
    for name, (function, *types) in functions.items():
        told(name, answered(function), *types)


def cufft(driver, folder):
    """libcufft.so.12, in the place of which a stand-in computes."""
    made = Cufft(driver)

    def plan_many(plan, rank, n, inembed, istride, idist, onembed, ostride, odist, kind, batch, size):
        lists = [list(x[:rank]) for x in (n, inembed, onembed)]
        size[0] = made.make_plan_many64(
            plan, rank, lists[0], lists[1], istride, idist, lists[2], ostride, odist, kind, batch
        )

    functions = {
        "cufftGetVersion": (returned(made.get_version), OUT_I),
        "cufftCreate": (returned(made.create), OUT_I),
        "cufftSetAutoAllocation": (made.set_auto_allocation, INT, INT),
        "cufftMakePlanMany64": (plan_many, INT, INT, LIST, LIST, I64, I64, LIST, I64, I64, INT, I64, OUT_SIZE),
        "cufftSetStream": (made.set_stream, INT, U64),
        "cufftSetWorkArea": (made.set_work_area, INT, AT),
        **{f"cufftExec{x}2{x}": (getattr(made, f"exec_{x}2{x}".lower()), INT, AT, AT, INT) for x in "CZ"},
        **{
            f"cufftExec{x}": (getattr(made, f"exec_{x}".lower()), INT, AT, AT)
            for x in ("R2C", "C2R", "D2Z", "Z2D")
        },
    }  # fmt: skip
    said("libcufft.so.12", folder, functions)
    return made


def sized(*at):
    """Writes what a function wants of memory to the arguments at these places."""

    def function(*args):
        for i, each in enumerate(at):
            args[each][0] = (96, 32)[i]

    return function


def cublas(driver, folder):
    made = Cublas(driver)
    functions = {"cublasCreate_v2": (returned(made.create), OUT), "cublasSetStream_v2": (made.set_stream, H, U64)}
    for letter in "sdcz":
        options = (H, INT, INT, INT, INT, INT, INT, AT, AT, INT, AT, INT)
        of = lambda name, letter=letter: getattr(made, letter + name)  # noqa: E731
        functions[f"cublas{letter.upper()}trsm_v2"] = of("trsm"), *options
        functions[f"cublas{letter.upper()}trsmBatched"] = of("trsm_batched"), *options, INT
        functions[f"cublas{letter.upper()}getrfBatched"] = of("getrf_batched"), H, INT, AT, INT, AT, AT, INT
        functions[f"cublas{letter.upper()}getrsBatched"] = (
            of("getrs_batched"), H, INT, INT, INT, AT, INT, AT, AT, INT, AT, INT,
        )  # fmt: skip
    said("libcublas.so.13", folder, functions)
    return made


def cusolver(driver, folder):
    for soname in ("libnvJitLink.so.13", "libcusparse.so.12", "libcublasLt.so.13"):
        said(soname, folder, {})
    made = Cusolver(driver)
    functions = {
        "cusolverDnCreate": (returned(made.create), OUT),
        "cusolverDnSetStream": (made.set_stream, H, U64),
        "cusolverDnCreateParams": (returned(made.create_params), OUT),
        "cusolverDnCreateGesvdjInfo": (returned(made.create_gesvdj_info), OUT),
        "cusolverDnXsyevBatched_bufferSize": (
            sized(11, 12), H, U64, INT, INT, I64, INT, AT, I64, INT, AT, INT, OUT_SIZE, OUT_SIZE, I64,
        ),
        "cusolverDnXsyevBatched": (
            made.xsyev_batched, H, U64, INT, INT, I64, INT, AT, I64, INT, AT, INT, AT, SIZE, AT, SIZE, AT, I64,
        ),
    }  # fmt: skip
    parts = (INT, INT, AT, INT, AT, AT, INT, AT, INT)  # m, n, a, s, u and v
    table = {
        "potrf": ("potrf", H, INT, INT, AT, INT, AT, INT, AT),
        "potrf_bufferSize": (sized(5), H, INT, INT, AT, INT, OUT_I),
        "potrfBatched": ("potrf_batched", H, INT, INT, AT, INT, AT, INT),
        "getrf": ("getrf", H, INT, INT, AT, INT, AT, AT, AT),
        "getrf_bufferSize": (sized(5), H, INT, INT, AT, INT, OUT_I),
        "getrs": ("getrs", H, INT, INT, INT, AT, INT, AT, AT, INT, AT),
        "geqrf": ("geqrf", H, INT, INT, AT, INT, AT, AT, INT, AT),
        "geqrf_bufferSize": (sized(5), H, INT, INT, AT, INT, OUT_I),
        "gesvdj": ("gesvdj", H, INT, INT, *parts, AT, INT, AT, U64),
        "gesvdj_bufferSize": (sized(12), H, INT, INT, *parts, OUT_I, U64),
        "gesvdjBatched": ("gesvdj_batched", H, INT, *parts, AT, INT, AT, U64, INT),
        "gesvdjBatched_bufferSize": (sized(11), H, INT, *parts, OUT_I, U64, INT),
    }
    reflected, values = (H, INT, INT, INT, AT, INT, AT), (H, INT, INT, INT, AT, INT, AT)
    for letter in "sdcz":
        q, e = ("orgqr", "syevd") if letter in "sd" else ("ungqr", "heevd")
        own = {
            q: (q, *reflected, AT, INT, AT), f"{q}_bufferSize": (sized(7), *reflected, OUT_I),
            e: (e, *values, AT, INT, AT), f"{e}_bufferSize": (sized(7), *values, OUT_I),
        }  # fmt: skip
        for name, (function, *types) in {**table, **own}.items():
            function = getattr(made, letter + function) if isinstance(function, str) else function
            functions[f"cusolverDn{letter.upper()}{name}"] = function, *types
    said("libcusolver.so.12", folder, functions)
    return made
