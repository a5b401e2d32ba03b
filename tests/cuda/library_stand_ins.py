"""Stand-ins for NVIDIA's libraries on the emulated device: they compute with NumPy when the stream comes to it, and refuse
what the documentation of the library refuses.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import itertools

import numpy as np

from genesis.core.call.op import REGISTRY
from genesis.cuda.runtime.devices import device_at
from genesis.cuda.runtime.emulated import Image
from genesis.cuda.runtime.parameters import Parameters

DTYPES = {2: "float16", 14: "bfloat16", 0: "float32", 1: "float64"}


def dtype_of(number):
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16 if DTYPES[number] == "bfloat16" else DTYPES[number])


class Work:
    """What streams of the emulated device are told to do: one kernel, that is loaded before anything is recorded."""

    parameters = Parameters("q")

    def __init__(self, driver):
        self.driver, self.told, self.numbers = driver, {}, itertools.count()
        image = Image(
            lambda spaces, grid, values: self.told[values[0]][1](spaces), lambda grid, values: self.told[values[0]][0]
        )
        device_at(0).enter()
        self.function = driver.function(driver.load(image), "kernel")

    def submit(self, stream, spans, compute):
        """Do something that reads and writes these bytes."""
        number = next(self.numbers)
        self.told[number] = spans, compute
        self.driver.launch(self.function, (1, 1, 1), 32, 0, stream, self.parameters, (number,))


def number_at(address, count):
    return int.from_bytes(ctypes.string_at(address, count), "little", signed=True)


class cuBLASLtError(Exception):  # noqa: N801  (the package's name)
    pass


class Refused(AssertionError):
    """What the real library answers with CUBLAS_STATUS_INVALID_VALUE."""


def demand(condition, what):
    if not condition:
        raise Refused(what)


class CublasLt:
    """cuBLASLt, as ``nvmath.bindings.cublasLt`` has it."""

    cuBLASLtError = cuBLASLtError  # noqa: N815
    Epilogue = enum.IntEnum("Epilogue", {"DEFAULT": 1, "BIAS": 4})
    MatmulDescAttribute = enum.IntEnum(
        "MatmulDescAttribute", {"TRANSA": 3, "TRANSB": 4, "EPILOGUE": 7, "BIAS_POINTER": 8}
    )
    MatrixLayoutAttribute = enum.IntEnum("MatrixLayoutAttribute", {"BATCH_COUNT": 5, "STRIDED_BATCH_OFFSET": 6})
    MatmulPreferenceAttribute = enum.IntEnum(
        "MatmulPreferenceAttribute",
        {"MAX_WORKSPACE_BYTES": 1, **{f"MIN_ALIGNMENT_{c}_BYTES": 5 + i for i, c in enumerate("ABCD")}},
    )
    matmul_heuristic_result_dtype = np.dtype(
        [("algo", [("data_", "<u8", (8,))]), ("workspace_size", "<u8"), ("state", "<i4"), ("waves_count", "<f4"),
         ("reserved", "<i4", (4,))]
    )  # fmt: skip
    sizes = {3: 4, 4: 4, 7: 4, 8: 8}  # bytes of attributes of a product
    layout_sizes = {5: 4, 6: 8}
    preference_sizes = {1: 8, 5: 4, 6: 4, 7: 4, 8: 4}

    def __init__(self, driver, unsupported=(), algorithms=1, bare=0, counts=False):
        self.work, self.unsupported, self.most = Work(driver), unsupported, algorithms
        self.counts = counts  # whether a workspace is a counter, which is zero when a kernel begins
        self.bare = bare  # how many of the algorithms want no workspace, and are offered alone where there is none
        self.handles = itertools.count(1 << 20)
        self.held, self.algorithms = {}, {}
        self.offered = {}  # algorithms that were, by what they are for and their numbers
        self.taken = []  # algorithms, one for each product
        self.products = []  # shapes and epilogues that were computed
        self.rows = []  # of each the leading dimensions of its operands and of what it gives
        self.aligned = []  # and whether these, what is from one matrix to the next and addresses are multiples of 16 bytes

    def _made(self, value):
        self.held[handle := next(self.handles)] = value
        return handle

    def create(self):
        return self._made("library")

    def get_version(self):
        return 130100

    def matmul_desc_create(self, compute, scale):
        demand((compute, scale) in ((68, 0), (70, 1)), "a compute type that goes with no such scale")
        return self._made({"compute": compute, 3: 0, 4: 0, 7: 1, 8: 0})

    def matrix_layout_create(self, kind, rows, columns, step):
        demand(kind in DTYPES and rows > 0 and columns > 0 and step >= rows, "a leading dimension below the rows")
        return self._made({"kind": kind, "rows": rows, "columns": columns, "step": step, 5: 1, 6: 0})

    def matmul_preference_create(self):
        return self._made({1: 0, 5: 256, 6: 256, 7: 256, 8: 256})

    def matmul_preference_destroy(self, preference):
        del self.held[preference]

    def _set(self, handle, attribute, address, count, sizes):
        demand(sizes[attribute] == count, f"attribute {attribute} has {sizes[attribute]} bytes, not {count}")
        self.held[handle][attribute] = number_at(address, count)

    def matmul_desc_set_attribute(self, description, attribute, address, count):
        self._set(description, attribute, address, count, self.sizes)

    def matrix_layout_set_attribute(self, layout, attribute, address, count):
        self._set(layout, attribute, address, count, self.layout_sizes)

    def matmul_preference_set_attribute(self, preference, attribute, address, count):
        self._set(preference, attribute, address, count, self.preference_sizes)

    def _checked(self, description, first, second, third, result):
        about, a, b, c, d = [self.held[h] for h in (description, first, second, third, result)]
        sizes = [(x["columns"], x["rows"]) if about[t] else (x["rows"], x["columns"]) for x, t in ((a, 3), (b, 4))]
        demand(sizes[0][1] == sizes[1][0], "inner dimensions that differ")
        demand((d["rows"], d["columns"]) == (sizes[0][0], sizes[1][1]), "another shape of the result")
        demand(len({x["kind"] for x in (a, b, c, d)}) == 1 and len({x[5] for x in (a, b, c, d)}) == 1, "kinds, batches")
        demand((about["compute"] == 70) == (a["kind"] == 1), "a compute type of another dtype")
        demand((about[7] == 4) == bool(about[8]), "a bias without its epilogue, or the other way around")
        return about, a, b, d, sizes[0][1]

    def matmul_algo_get_heuristic(
        self, handle, description, first, second, third, result, preference, asked, out, count
    ):
        demand(self.held[handle] == "library" and asked in (1, 8), "a handle")
        _, a, *_ = self._checked(description, first, second, third, result)
        if DTYPES[a["kind"]] in self.unsupported:
            raise cuBLASLtError("NOT_SUPPORTED (15)")
        wanted = self.held[preference]
        demand(wanted[1] in (0, 32 << 20) and (wanted[1] or asked > 1), "another workspace")
        answer = np.zeros(min(asked, self.most if wanted[1] else self.bare), self.matmul_heuristic_result_dtype)
        for i, each in enumerate(answer):
            space = (4 if self.counts else 4096) if i >= self.bare else 0
            known = description, first, second, tuple([wanted[5 + k] for k in range(4)]), space
            algorithm = self.offered.setdefault((known, i), next(self.handles))
            self.algorithms[algorithm] = known
            each["algo"]["data_"][0], each["workspace_size"] = algorithm, space
        ctypes.memmove(out, answer.ctypes.data, answer.nbytes)
        ctypes.memmove(count, np.array([len(answer)], np.int32).ctypes.data, 4)

    def matmul(self, handle, description, alpha, a, first, b, second, beta, c, third, d, result, algorithm, space, count,
               stream):  # fmt: skip
        about, left, right, out, _ = self._checked(description, first, second, third, result)
        self.taken.append(number_at(algorithm, 8))
        known = self.algorithms[self.taken[-1]]
        demand(known[:3] == (description, first, second), "an algorithm of another product")
        demand(all([x % n == 0 for x, n in zip((a, b, c, d), known[3], strict=True)]), "less aligned than was said")
        demand(count >= known[4] and space % 16 == 0, "a workspace")
        scale = ctypes.c_double if about["compute"] == 70 else ctypes.c_float
        adds = scale.from_address(beta).value
        demand(scale.from_address(alpha).value == 1.0 and adds in (0.0, 1.0), "other scales")
        demand(not (adds and about[8]), "a bias that is added twice")
        bias, batch = about[8], out[5]
        kind = dtype_of(out["kind"])
        turned = [bool(about[3]), bool(about[4])]

        def span(x, address, writes=False):
            size = (batch - 1) * x[6] + (x["columns"] - 1) * x["step"] + x["rows"]
            return address, size * kind.itemsize, writes

        spans = [span(left, a), span(right, b), span(out, d, True), (space, count, True)]
        spans += [(bias, out["rows"] * kind.itemsize, False)] if bias else []

        def matrices(spaces, x, address):
            flat = spaces.array(address, kind, span(x, address)[1] // kind.itemsize)
            steps = [s * kind.itemsize for s in (x[6], 1, x["step"])]
            return np.lib.stride_tricks.as_strided(flat, (batch, x["rows"], x["columns"]), steps)

        if self.counts and known[4]:
            self.work.driver.fill(space, 0, 4, 1, stream)

        def compute(spaces):
            if self.counts and known[4]:
                tiles = spaces.array(space, np.dtype(np.int32), 1)
                demand(tiles[0] == 0, "a counter that is not zero")
                tiles[0] = 7
            wide = np.float64 if kind == np.float64 else np.float32
            x, y = (
                (m.transpose(0, 2, 1) if t else m).astype(wide)
                for m, t in zip((matrices(spaces, left, a), matrices(spaces, right, b)), turned, strict=True)
            )
            total = x @ y
            if bias:
                total += spaces.array(bias, kind, out["rows"]).astype(wide)[:, None]
            into = matrices(spaces, out, d)
            into[...] = (total + into.astype(wide) if adds else total).astype(kind)

        self.work.submit(stream, spans, compute)
        self.products.append((batch, out["columns"], out["rows"], DTYPES[out["kind"]], bool(bias)))
        self.rows.append((right["step"], left["step"], out["step"]))
        steps = [n * kind.itemsize for each in (left, right, out) for n in (each["step"], each[6])]
        self.aligned.append(not any([n % 16 for n in (*steps, a, b, d)]))


# ---- cuDNN


class NotSupported(Exception):
    pass


class Described:
    """A tensor of a graph."""

    def __init__(self, uid=None, dim=None, stride=None, data_type=None, made=None):
        self.uid, self.dim, self.stride, self.kind, self.made, self.out = uid, dim, stride, data_type, made, False

    def _with(self, **values):
        self.__dict__.update(values)
        return self

    def set_output(self, out):
        return self._with(out=out)

    def set_uid(self, uid):
        return self._with(uid=uid)

    def set_dim(self, dim):
        return self._with(dim=dim)

    def set_stride(self, stride):
        return self._with(stride=stride)

    def set_data_type(self, kind):
        return self._with(kind=kind)


class Cudnn:
    """cuDNN, as ``cudnn`` of nvidia-cudnn-frontend has it: bare addresses, numbers of tensors, one stream of a handle."""

    cudnnGraphNotSupportedError = NotSupported  # noqa: N815
    data_type = enum.Enum("data_type", "HALF BFLOAT16 FLOAT")
    heur_mode = enum.Enum("heur_mode", "A FALLBACK")

    def __init__(self, driver, refused=()):
        self.work, self.refused = Work(driver), refused
        self.streams, self.handles = {}, itertools.count(1 << 21)
        self.graphs, self.done = 0, []
        self.deterministic = []  # of each gradient of attention that was described, whether its bits are to be the same

    def create_handle(self):
        handle = next(self.handles)
        self.streams[handle] = None
        return handle

    def set_stream(self, handle, stream):
        self.streams[handle] = stream

    def pygraph(self, *, io_data_type, intermediate_data_type, compute_data_type, handle):
        demand(
            intermediate_data_type == compute_data_type == self.data_type.FLOAT and handle in self.streams, "a graph"
        )
        self.graphs += 1
        return CudnnGraph(self, handle)


def softmaxed(q, k, causal, scale):
    """Weights and natural logarithms of their sums."""
    scores = (q @ k.swapaxes(-1, -2)) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    most = scores.max(-1, keepdims=True)
    total = np.log(np.exp(scores - most).sum(-1, keepdims=True)) + most
    return np.exp(scores - total), total


def laid(*tensors):
    """cuDNN computes other numbers, without a word, where filters have gaps, or channels and places in another order."""
    order = [
        (0, 1, *range(2, len(t.dim))) if t.stride[1] >= t.stride[-1] else (0, *range(2, len(t.dim)), 1) for t in tensors
    ]
    for t, axes in zip(tensors, order, strict=True):
        sizes, size = [(t.dim[i], t.stride[i]) for i in axes], 1
        for n, stride in reversed(sizes):
            demand(n == 1 or stride == size, f"strides {t.stride} of {t.dim}")
            size *= n


class CudnnGraph:
    """A graph of one op, and what it means."""

    def __init__(self, cudnn, handle):
        self.cudnn, self.handle, self.inputs, self.outs, self.op, self.options = cudnn, handle, {}, [], "", {}
        self.built = False

    def tensor(self, *, dim, stride, data_type, uid):
        demand(len(dim) == len(stride) and uid not in self.inputs and all([s > 0 for s in stride]), "a tensor")
        self.inputs[uid] = Described(uid, dim, stride, data_type)
        return self.inputs[uid]

    def _op(self, name, given, count, **options):
        demand(all([self.inputs.get(t.uid) is t for t in given.values()]), "tensors of another graph")
        self.op, self.given, self.options = name, given, options
        self.outs = [Described(made=i) for i in range(count)]
        return self.outs

    def sdpa(self, *, q, k, v, generate_stats, attn_scale, use_causal_mask):
        demand(generate_stats and q.dim[-1] % 8 == v.dim[-1] % 8 == 0 and q.dim[1] % k.dim[1] == 0, "hidden_dim")
        demand(all([t.stride[-1] == 1 and len(t.dim) == 4 for t in (q, k, v)]), "features that do not lie together")
        return self._op("sdpa", {"q": q, "k": k, "v": v}, 2, scale=attn_scale, causal=use_causal_mask)

    def sdpa_backward(self, *, q, k, v, o, dO, stats, attn_scale, use_causal_mask, use_deterministic_algorithm):  # noqa: N803
        demand(stats.kind == Cudnn.data_type.FLOAT, "totals in float32")
        demand(stats.dim == [*q.dim[:3], 1], "totals of another shape")
        given = {"q": q, "k": k, "v": v, "o": o, "g": dO, "stats": stats}
        self.cudnn.deterministic.append(use_deterministic_algorithm)
        return self._op("sdpa_backward", given, 3, scale=attn_scale, causal=use_causal_mask)

    def conv_fprop(self, *, image, weight, stride, padding, dilation):
        laid(image, weight)
        return self._op("conv_fprop", {"x": image, "w": weight}, 1, rules=(stride, padding, dilation))[0]

    def bias(self, *, input, bias):
        demand(input is self.outs[0] and bias.dim[1] == self.given["w"].dim[0], "a bias")
        demand(bias.dim[0] == 1 and all([n == 1 for n in bias.dim[2:]]), "a bias")
        self.given["b"] = bias
        return input

    def conv_dgrad(self, *, loss, filter, stride, padding, dilation):  # noqa: A002
        laid(loss, filter)
        return self._op("conv_dgrad", {"x": loss, "w": filter}, 1, rules=(stride, padding, dilation))[0]

    def conv_wgrad(self, *, image, loss, stride, padding, dilation):
        laid(image, loss)
        return self._op("conv_wgrad", {"x": image, "g": loss}, 1, rules=(stride, padding, dilation))[0]

    def build(self, heuristics):
        demand(heuristics[0] == Cudnn.heur_mode.A, "heuristics")
        demand(
            all([t.out and t.dim and t.stride and t.uid and t.kind for t in self.outs]),
            "an output that is not described",
        )
        if self.op in self.cudnn.refused:
            raise NotSupported("no engine")
        self.built = True

    def get_workspace_size(self):
        return 1 << 12

    def execute(self, addresses, workspace, handle):
        stream = self.cudnn.streams[handle]
        every = {**self.inputs, **{t.uid: t for t in self.outs}}
        demand(self.built and set(addresses) == set(every) and stream is not None, "another set of tensors")
        demand(all([type(a) is int and a % 16 == 0 for a in addresses.values()]) and workspace % 16 == 0, "alignment")
        kinds = {Cudnn.data_type.HALF: 2, Cudnn.data_type.BFLOAT16: 14, Cudnn.data_type.FLOAT: 0}

        def span(t):
            count = 1 + sum([(n - 1) * s for n, s in zip(t.dim, t.stride, strict=True)])
            return addresses[t.uid], count * dtype_of(kinds[t.kind]).itemsize, t.out

        def view(spaces, t):
            kind = dtype_of(kinds[t.kind])
            flat = spaces.array(addresses[t.uid], kind, span(t)[1] // kind.itemsize)
            return np.lib.stride_tricks.as_strided(flat, t.dim, [s * kind.itemsize for s in t.stride])

        def compute(spaces):
            given = {name: view(spaces, t).astype(np.float32) for name, t in self.given.items()}
            for t, value in zip(self.outs, self.meaning(given, self.outs), strict=True):
                out = view(spaces, t)
                out[...] = value.astype(out.dtype)

        spans = [span(t) for t in every.values()]
        self.cudnn.work.submit(stream, [*spans, (workspace, 1 << 12, True)], compute)
        self.cudnn.done.append(self.op)

    def meaning(self, x, outs):
        if self.op.startswith("conv"):
            return [self.convolution(x, outs[0])]
        group = x["q"].shape[1] // x["k"].shape[1]
        k, v = np.repeat(x["k"], group, 1), np.repeat(x["v"], group, 1)
        weights, total = softmaxed(x["q"], k, self.options["causal"], self.options["scale"])
        if self.op == "sdpa":
            return [weights @ v, total]
        assert np.allclose(total, x["stats"], atol=1e-2)  # natural logarithms
        gw = x["g"] @ v.swapaxes(-1, -2)
        gs = weights * (gw - (x["g"] * x["o"]).sum(-1, keepdims=True)) * self.options["scale"]
        gk, gv = gs.swapaxes(-1, -2) @ x["q"], weights.swapaxes(-1, -2) @ x["g"]
        b, h, n, _ = x["k"].shape
        return [gs @ k, *[y.reshape(b, h, group, n, -1).sum(2) for y in (gk, gv)]]

    def convolution(self, x, out):
        rules, given = self.options["rules"], x["x"]
        if self.op == "conv_wgrad":
            groups = given.shape[1] // out.dim[1]
            return REGISTRY["convolution_weight"].meaning(given, x["g"], tuple(out.dim[2:]), *rules, groups)
        back = self.op == "conv_dgrad"
        groups = out.dim[1] // x["w"].shape[1] if back else given.shape[1] // x["w"].shape[1]
        least = [(n - 1) * s - 2 * p + (t - 1) * d + 1
                 for n, s, p, d, t in zip(given.shape[2:], *rules, x["w"].shape[2:], strict=True)]  # fmt: skip
        extra = tuple([n - m for n, m in zip(out.dim[2:], least, strict=True)]) if back else (0,) * len(least)
        bias = x["b"].reshape(-1) if "b" in x else None
        return REGISTRY["convolution"].meaning(given, x["w"], bias, *rules, back, extra, groups)


# ---- NCCL


class UniqueId:
    """What the ranks of a communicator have in common."""

    def __init__(self, content=bytes(128)):
        self.content = content

    def __bytes__(self):
        return self.content

    @classmethod
    def from_buffer(cls, content):
        demand(len(content) == 128, "a unique id")
        return cls(bytes(content))


class Nccl:
    """NCCL, as ``nccl.bindings.nccl`` has it. What ranks have is compared and combined where a call is made: the stream's
    earlier work is done then, which the real library does not wait for.

    Args:
        exchange: gives everybody's bytes for those of this rank
    """

    UniqueId = UniqueId
    KINDS = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16")
    OPS = (np.add, np.multiply, np.maximum, np.minimum)

    def __init__(self, driver, exchange):
        self.work, self.exchange = Work(driver), exchange
        self.ranks, self.done = {}, []

    def get_unique_id(self):
        return UniqueId(bytes(range(128)))

    def comm_init_rank(self, size, unique, rank):
        demand(set(self.exchange(bytes(unique))) == {bytes(range(128))} and 0 <= rank < size, "ranks of one id")
        self.ranks[7] = rank, size
        return 7

    def comm_destroy(self, comm):
        del self.ranks[comm]

    def _run(self, name, send, recv, count, received, kind, comm, stream, combine, options=()):
        rank, size = self.ranks[comm]
        dtype, got = np.dtype(self.KINDS[kind]), []
        demand(send % 16 == 0 and recv % 16 == 0 and count > 0, "addresses")
        read = send, count * dtype.itemsize, False
        self.work.submit(stream, [read], lambda spaces: got.append(spaces.array(send, dtype, count).copy()))
        self.work.driver.stream_synchronize(stream)
        every = self.exchange(repr((name, count, kind, options)).encode())
        demand(len({*every}) == 1 and len(every) == size, f"ranks call different things: {every}")
        given = [np.frombuffer(each, dtype) for each in self.exchange(got[0].tobytes())]
        out = combine(given, rank)
        if out is not None:
            demand(len(out) == received, "a count")

            def write(spaces):
                spaces.array(recv, dtype, received)[...] = out

            self.work.submit(stream, [(recv, received * dtype.itemsize, True)], write)
        self.done.append((name, self.KINDS[kind], count))

    def all_reduce(self, sendbuff, recvbuff, count, datatype, op, comm, stream):
        self._run("all_reduce", sendbuff, recvbuff, count, count, datatype, comm, stream,
                  lambda given, rank: functools.reduce(self.OPS[op], given), (op,))  # fmt: skip

    def reduce(self, sendbuff, recvbuff, count, datatype, op, root, comm, stream):
        self._run("reduce", sendbuff, recvbuff, count, count, datatype, comm, stream,
                  lambda given, rank: functools.reduce(self.OPS[op], given) if rank == root else None, (op, root))  # fmt: skip

    def reduce_scatter(self, sendbuff, recvbuff, recvcount, datatype, op, comm, stream):
        size = self.ranks[comm][1]
        self._run("reduce_scatter", sendbuff, recvbuff, recvcount * size, recvcount, datatype, comm, stream,
                  lambda given, rank: functools.reduce(self.OPS[op], given).reshape(size, -1)[rank], (op,))  # fmt: skip

    def broadcast(self, sendbuff, recvbuff, count, datatype, root, comm, stream):
        self._run(
            "broadcast",
            sendbuff,
            recvbuff,
            count,
            count,
            datatype,
            comm,
            stream,
            lambda given, rank: given[root],
            (root,),
        )

    def all_gather(self, sendbuff, recvbuff, sendcount, datatype, comm, stream):
        self._run("all_gather", sendbuff, recvbuff, sendcount, sendcount * self.ranks[comm][1], datatype, comm, stream,
                  lambda given, rank: np.concatenate(given))  # fmt: skip
