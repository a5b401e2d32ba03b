"""cuBLASLt and NCCL as their callers in C see them, over the driver of `c_driver.py`: what the packages of NVIDIA
(``nvmath-python``, ``nccl4py``) hand over goes to the stand-ins of the tests, which compute and refuse.
"""

import ctypes as c

import library_stand_ins as stand_ins
from c_library import library

U64, P, INT, SIZE = c.c_uint64, c.c_void_p, c.c_int, c.c_size_t
OUT = c.POINTER(U64)


class Unique(c.Structure):
    """ncclUniqueId, which is passed by value."""

    _fields_ = [("content", c.c_char * 128)]


def returned(make):
    """A function that writes what another one gives to its first argument."""

    def function(out, *args):
        out[0] = make(*args)

    return function


def said(soname, folder, prefix, functions):
    """A library of these functions; 15 is what cuBLASLt answers where it has no kernel."""
    told = library(soname, folder, [prefix + name for name in functions])
    for name, (function, *types) in functions.items():
        told(prefix + name, answered(function), *types)


def answered(function):
    def call(*args):
        try:
            return function(*args) or 0  # most give nothing: their status
        except stand_ins.cuBLASLtError:
            return 15

    return call


def cublaslt(driver, folder):
    """libcublasLt.so.13, in the place of which a stand-in computes."""
    lt = stand_ins.CublasLt(driver)
    attribute = (U64, INT, P, SIZE)
    functions = {
        "GetVersion": (lt.get_version,),
        "Create": (returned(lt.create), OUT),
        "MatmulDescCreate": (returned(lt.matmul_desc_create), OUT, INT, INT),
        "MatmulDescSetAttribute": (lt.matmul_desc_set_attribute, *attribute),
        "MatrixLayoutCreate": (returned(lt.matrix_layout_create), OUT, INT, U64, U64, c.c_int64),
        "MatrixLayoutSetAttribute": (lt.matrix_layout_set_attribute, *attribute),
        "MatmulPreferenceCreate": (returned(lt.matmul_preference_create), OUT),
        "MatmulPreferenceDestroy": (lt.matmul_preference_destroy, U64),
        "MatmulPreferenceSetAttribute": (lt.matmul_preference_set_attribute, *attribute),
        "MatmulAlgoGetHeuristic": (lt.matmul_algo_get_heuristic, *[U64] * 7, INT, P, P),
        "Matmul": (lt.matmul, *[U64] * 12, U64, U64, SIZE, U64),
    }
    said("libcublasLt.so.13", folder, "cublasLt", functions)
    return lt


def nccl(driver, folder):
    """libnccl.so.2 of a process that is alone."""
    made = stand_ins.Nccl(driver, lambda content: [content])

    def unique(out):
        c.memmove(out, bytes(made.get_unique_id()), 128)

    def init(out, size, given, rank):
        out[0] = made.comm_init_rank(size, stand_ins.UniqueId(c.string_at(c.addressof(given), 128)), rank)

    buffers, where = (U64, U64, SIZE, INT), (U64, U64)
    functions = {
        "GetUniqueId": (unique, P),
        "CommInitRank": (init, OUT, INT, Unique, INT),
        "CommDestroy": (made.comm_destroy, U64),
        "AllReduce": (made.all_reduce, *buffers, INT, *where),
        "Reduce": (made.reduce, *buffers, INT, INT, *where),
        "ReduceScatter": (made.reduce_scatter, *buffers, INT, *where),
        "Broadcast": (made.broadcast, *buffers, INT, *where),
        "AllGather": (made.all_gather, *buffers, *where),
    }
    said("libnccl.so.2", folder, "nccl", functions)
    return made
