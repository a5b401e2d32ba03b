"""Every collective, against what NumPy makes of the values of all ranks. Works with any number of ranks, one included."""

from __future__ import annotations

import itertools
import weakref

import numpy as np
from together import rank, refused, size

import genesis
import genesis.distributed as dist
from genesis.distributed import ReduceOp
from genesis.distributed.mpi import _Agreements
from genesis.distributed.nn.ops import sum_in_tree
from genesis.kernels.cpu.trees import tree_sum
from genesis.nn.parallel.shards import sum_of_ranks

FLOATS = [genesis.float32, genesis.float64, genesis.float16, genesis.bfloat16]
INTEGERS = [genesis.int8, genesis.uint8, genesis.int16, genesis.int32, genesis.int64, genesis.uint16, genesis.uint32]
COMPLEX = [genesis.complex64, genesis.complex128]
MEANINGS = {
    ReduceOp.SUM: np.sum, ReduceOp.PRODUCT: np.prod, ReduceOp.MIN: np.min, ReduceOp.MAX: np.max, ReduceOp.AVG: np.mean,
    ReduceOp.BAND: np.bitwise_and.reduce, ReduceOp.BOR: np.bitwise_or.reduce, ReduceOp.BXOR: np.bitwise_xor.reduce,
}  # fmt: skip
BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def of(who, shape, dtype):
    """The tensor of a rank: all ranks know those of all."""
    generator = np.random.default_rng([who, *shape, 1])
    values = generator.integers(-3, 4, shape) if dtype not in (genesis.bool,) else generator.integers(0, 2, shape)
    if dtype in COMPLEX:
        values = values + 1j * generator.integers(-3, 4, shape)
    if dtype in (genesis.uint8, genesis.uint16, genesis.uint32):
        values = abs(values)
    return genesis.tensor(values).to(dtype)


def everybody(shape, dtype):
    """Those of all ranks, in numbers wide enough."""
    return [of(who, shape, dtype) for who in range(size)]


def equal(x, want, note=""):
    want = genesis.tensor(np.asarray(want)).to(x.dtype) if not isinstance(want, genesis.Tensor) else want
    assert x.shape == want.shape and x.dtype == want.dtype, (note, x, want)
    assert np.array_equal(x.numpy(), want.numpy()), (note, x, want)


def combined(tensors, op):
    if op == ReduceOp.AVG and tensors[0].is_complex():  # by parts, each rounded once
        total = combined(tensors, ReduceOp.SUM)
        return total.real / size + 1j * (total.imag / size)
    wide = genesis.complex128 if tensors[0].is_complex() else genesis.float64 if op not in BITS else genesis.int64
    return MEANINGS[op](np.stack([t.to(wide).numpy() for t in tensors]), axis=0)


def ops_of(dtype):
    if dtype in COMPLEX:
        return [ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.AVG]
    return [*MEANINGS][:5] if dtype in FLOATS else [*MEANINGS][:4] + [*BITS]


def want_of(dtype, op, shape):
    tensors = everybody(shape, dtype)
    if dtype == genesis.bool:
        tensors = [t.to(genesis.int64) for t in tensors]
        return genesis.tensor(np.asarray(combined(tensors, op))).to(genesis.bool)
    return genesis.tensor(np.asarray(combined(tensors, op))).to(dtype)


def reductions():
    for dtype in [*FLOATS, *INTEGERS, *COMPLEX, genesis.bool]:
        for op, shape in zip(ops_of(dtype), itertools.cycle([(3, 2), (), (0, 2)])):  # noqa: B905
            want = want_of(dtype, op, shape)
            x = of(rank, shape, dtype)
            dist.all_reduce(x, op)
            equal(x, want, op)
        for op in ops_of(dtype):
            shape = (3, 2)
            want = want_of(dtype, op, shape)
            x = of(rank, shape, dtype)
            dist.reduce(x, size - 1, op)
            equal(x, want if rank == size - 1 else of(rank, shape, dtype), op)
            block = genesis.zeros(shape, dtype=dtype)
            dist.reduce_scatter(block, [of(rank, shape, dtype)] * size, op)
            equal(block, want, op)
        every = genesis.zeros(size, 3, dtype=dtype)
        dist.all_gather_into_tensor(every, of(rank, (3,), dtype))
        equal(every, genesis.stack(everybody((3,), dtype)))


def rounding():
    x = (
        genesis.tensor([1.0, 256.0]).to(genesis.bfloat16)
        if rank == 0
        else genesis.tensor([2.0**-9, 1.0]).to(genesis.bfloat16)
    )
    dist.all_reduce(x)
    want = np.array([1 + (size - 1) * 2.0**-9, 256.0 + (size - 1)], np.float32)
    equal(x, genesis.tensor(want).to(genesis.bfloat16))


def extremes_of_special_floats():
    for dtype in FLOATS:
        x = genesis.tensor(
            [float("nan"), -0.0, float("-inf"), -1.5] if rank == 0 else [1.0, 0.0, float("inf"), -2.5]
        ).to(dtype)
        largest, smallest = x.clone(), x.clone()
        dist.all_reduce(largest, ReduceOp.MAX)
        dist.all_reduce(smallest, ReduceOp.MIN)
        assert largest.isnan().tolist() == smallest.isnan().tolist() == [True, False, False, False]
        if size > 1:
            assert largest[1:].tolist() == [0.0, float("inf"), -1.5] and not largest[1].signbit()
            assert smallest[1:].tolist() == [0.0, float("-inf"), -2.5] and smallest[1].signbit()


def moves():
    shape = (2, 3)
    for dtype in [genesis.float32, genesis.bfloat16, genesis.bool, genesis.complex128]:
        mine, all_ = of(rank, shape, dtype), everybody(shape, dtype)
        for root in range(size):
            x = mine.clone()
            dist.broadcast(x, root)
            equal(x, all_[root])
            outs = [genesis.zeros(shape, dtype=dtype) for _ in range(size)] if rank == root else None
            dist.gather(mine, outs, root)
            for got, want in zip(outs or [], all_, strict=False):
                equal(got, want)
            y = genesis.zeros(shape, dtype=dtype)
            dist.scatter(
                y,
                [all_[root] + i if dtype != genesis.bool else all_[root] for i in range(size)]
                if rank == root
                else None,
                root,
            )
            equal(y, all_[root] + rank if dtype != genesis.bool else all_[root])
        outs = [genesis.zeros(shape, dtype=dtype) for _ in range(size)]
        dist.all_gather(outs, mine)
        for got, want in zip(outs, all_, strict=True):
            equal(got, want)
        joined = genesis.zeros(2 * size, 3, dtype=dtype)
        dist.all_gather_into_tensor(joined, mine)
        equal(joined, genesis.cat(all_))


def moves_of_stored_numbers():
    """Those of dtypes that are only stored are moved as they are, and not combined."""
    for dtype in (genesis.float8_e4m3fn, genesis.float8_e5m2, genesis.float8_e8m0fnu, genesis.complex32):
        all_ = [genesis.tensor([1.0, 2.0, 0.5][who % 3 :]).repeat(2)[:2].to(dtype) for who in range(size)]
        x = all_[rank].clone()
        dist.broadcast(x, size - 1)
        equal(x, all_[-1])
        outs = [genesis.zeros(2).to(dtype) for _ in range(size)]
        dist.all_gather(outs, all_[rank])
        for got, want in zip(outs, all_, strict=True):
            equal(got, want)
        try:
            dist.all_reduce(x)
        except RuntimeError as error:
            assert "numbers of this dtype are only stored, and moved" in str(error)
        else:
            raise AssertionError(dtype)


def exchanges():
    x = genesis.arange(size * 2) + 100 * rank
    out = genesis.zeros(size * 2, dtype=genesis.int64)
    dist.all_to_all_single(out, x)
    equal(out, np.concatenate([np.arange(2) + 2 * rank + 100 * who for who in range(size)]))
    # rank r sends i + 1 rows to rank i
    sent = [i + 1 for i in range(size)]
    x, out = genesis.full((sum(sent), 2), float(rank)), genesis.zeros(size * (rank + 1), 2)
    dist.all_to_all_single(out, x, [rank + 1] * size, sent)
    equal(out, np.repeat(np.arange(float(size)), rank + 1)[:, None] * np.ones(2))
    outs = [genesis.zeros(who + 1) for who in range(size)]
    dist.all_to_all(outs, [genesis.full((rank + 1,), 10.0 * rank + to) for to in range(size)])
    for who, got in enumerate(outs):
        equal(got, np.full(who + 1, 10.0 * who + rank))
    blocks, out = genesis.arange(size * 2.0).reshape(size, 2) + rank, genesis.zeros(2)
    dist.reduce_scatter_tensor(out, blocks)
    want = size * (np.arange(2.0) + 2 * rank) + sum(range(size))
    equal(out, want)
    dist.reduce_scatter_tensor(blocks[0], blocks)  # into the memory that is sent
    equal(blocks[0], want)
    x = genesis.arange(size * 2.0) + 100 * rank
    dist.all_to_all_single(x, x)
    equal(x, np.concatenate([np.arange(2) + 2 * rank + 100 * who for who in range(size)]))


def layouts():
    x = (genesis.arange(6.0) + rank).reshape(2, 3).t()
    dist.all_reduce(x)
    equal(x, (size * np.arange(6.0).reshape(2, 3) + sum(range(size))).T)
    assert not x.is_contiguous()
    base = genesis.zeros(4, 2)
    dist.broadcast(base[:, 1], 0)
    column = genesis.zeros(size, 2)
    dist.all_gather_into_tensor(column.t()[1], genesis.full((1,), rank + 1.0))
    equal(column, np.stack([np.zeros(size), np.arange(size) + 1.0], 1))
    version = base._version
    dist.all_reduce(base[::2])
    assert base._version > version
    y = genesis.arange(3.0).flip(0)
    dist.all_reduce(y)
    equal(y, size * np.arange(3.0)[::-1])


def of_nothing():
    """Tensors without elements, of the same shapes in all ranks, go everywhere."""
    none = genesis.zeros(0, 3)
    dist.all_reduce(none)
    dist.broadcast(none, 0)
    dist.all_reduce(none, dist.ReduceOp.MAX)
    outs = [genesis.zeros(0, 3) for _ in range(size)]
    dist.all_gather(outs, none)
    dist.all_gather_into_tensor(genesis.zeros(0, 3), none)
    dist.reduce_scatter_tensor(genesis.zeros(0), genesis.zeros(0))
    dist.gather(none, outs if rank == 0 else None, 0)
    dist.scatter(none, outs if rank == 0 else None, 0)
    dist.all_to_all_single(genesis.zeros(0, 3), none)
    if rank < 2 <= size:
        dist.isend(none, 1, tag=3) if rank == 0 else dist.recv(genesis.ones(0, 3), 0, tag=3)
    assert [each.shape for each in outs] == [(0, 3)] * size
    rest = genesis.full((rank,), float(rank))  # of some ranks nothing
    sent = [rank if to == 0 else 0 for to in range(size)]
    out = genesis.zeros(sum(range(size)) if rank == 0 else 0)
    dist.all_to_all_single(out, rest, list(range(size)) if rank == 0 else [0] * size, sent)
    if rank == 0:
        equal(out, np.repeat(np.arange(float(size)), np.arange(size)))


def sums_in_tree():
    """In the order of the tree, to the last bit; many at once, which are waited for in any order."""
    if size & (size - 1):
        return  # no power of two
    counts, world = (0, 1, 5, 999 * size, 300_000 * size), dist.GroupMember.WORLD
    pending = []
    for dtype in (np.float32, np.float64, genesis.bfloat16.np):
        for count in counts:
            parts = [np.random.default_rng([who, count]).standard_normal(count).astype(dtype) for who in range(size)]
            out = sum_in_tree(genesis.from_numpy(parts[rank]), None).numpy()
            assert out.dtype == dtype and (out == tree_sum(parts)).all(), (dtype, count)
            if count % size == 0:
                memory = parts[rank].copy()
                pending.append((sum_of_ranks(memory, world), memory, tree_sum(parts)))
    for work, memory, want in reversed(pending) if rank % 2 else pending:
        work.wait()
        assert (memory == want).all()


def works():
    pending = [dist.all_reduce(genesis.full((1000,), float(i)), async_op=True) for i in range(5)]
    alone = genesis.ones(1)
    dist.all_reduce(alone)  # in between
    for i, work in enumerate(pending):
        assert work.wait() and work.is_completed() and work.is_success() and work.exception() is None
        equal(work.result()[0], np.full(1000, float(size * i)))
    memory, out = np.ones((size, 1000)), genesis.zeros(1000, dtype=genesis.float64)
    read = weakref.ref(memory)
    work = dist.reduce_scatter_tensor(out, genesis.from_numpy(memory).view(-1), async_op=True)
    del memory
    assert size == 1 or read() is not None  # MPI reads it until the end
    work.wait()
    equal(out, np.full(1000, float(size)))
    calls = []
    future = dist.all_reduce(genesis.ones(2), async_op=True).get_future()
    later = future.then(lambda done: done.value()[0] / size).then(lambda done: calls.append(1) or done.value() + 1)
    assert not calls
    while not later.done():
        pass
    equal(later.wait(), np.full(2, 2.0))
    future.add_done_callback(lambda done: calls.append(done.wait()[0]))
    later.value()
    assert calls[0] == 1 and len(calls) == 2 and calls[1].tolist() == [size, size]
    half = genesis.ones(3, dtype=genesis.float16)
    work = dist.all_reduce(half, async_op=True)
    while not work.is_completed():
        pass
    equal(half, np.full(3, float(size)))
    out = [genesis.zeros(2) for _ in range(size)]
    dist.all_gather(out, genesis.full((2,), float(rank)), async_op=True).wait()
    assert [t[0].item() for t in out] == [float(who) for who in range(size)]
    dist.barrier(async_op=True).wait()
    dist.barrier()
    dist.monitored_barrier()


def many_at_once():
    """More than what is remembered of those that have begun; what an earlier one came to stays."""
    pending = [dist.all_reduce(genesis.full((2,), float(i)), async_op=True) for i in range(300)]
    for i in reversed(range(300)) if rank % 2 else range(300):
        pending[i].wait()
        equal(pending[i].result()[0], np.full(2, float(size * i)))


def agreements():
    """Those of an MPI that begins no combination again, too."""
    if size == 1:
        return
    from mpi4py import MPI

    class Older:
        def __init__(self, comm):
            self.Iallreduce = comm.Iallreduce

    comm = MPI.COMM_WORLD.Dup()
    for made in (comm, Older(comm)):
        found = _Agreements(made, MPI, MPI.IN_PLACE, 4)
        for number in (1, 2, 3, 4, 5, 2**61 + 7):
            for own, wanted in ((number, True), (number + ((rank == 1) << 30), False)):
                one = found.begin(own)
                while not one.Test():
                    pass
                assert one.agreed is wanted, (made, number)
        found.free()
    comm.Free()


def messages():
    right, left = (rank + 1) % size, (rank - 1) % size
    x = genesis.zeros(3)
    send, receive = dist.isend(genesis.full((3,), float(rank)), right), dist.irecv(x, left)
    assert send.wait() and receive.wait() and receive.source_rank() == left
    equal(x, np.full(3, float(left)))
    if size > 1:
        if rank == 0:
            dist.send(genesis.tensor([7], dtype=genesis.bfloat16), 1, tag=5)
        if rank == 1:
            y = genesis.zeros(1, dtype=genesis.bfloat16)
            assert dist.recv(y, tag=5) == 0 and y.item() == 7
    z = genesis.zeros(2, 2).t()
    for work in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, genesis.full((2, 2), 1.0 + rank), right), dist.P2POp(dist.irecv, z, left)]
    ):
        work.wait()
    equal(z, np.full((2, 2), 1.0 + left))


def objects():
    mine = {
        "rank": rank,
        "list": [1.5, None, "é" * rank],
        ("a", 1): (True, b"\0x"),
        "t": genesis.full((rank, 2), 1.0, dtype=genesis.bfloat16),
    }
    said = [None] * size
    dist.all_gather_object(said, mine)
    for who, got in enumerate(said):
        assert got["rank"] == who and got["list"] == [1.5, None, "é" * who] and got["a", 1] == (True, b"\0x")
        assert got["t"].shape == (who, 2) and got["t"].dtype == genesis.bfloat16
    given = [3, "x"] if rank == 0 else [None, None]
    dist.broadcast_object_list(given, 0)
    assert given == [3, "x"]
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(str(rank), gathered)
    assert gathered == ([str(who) for who in range(size)] if rank == 0 else None)
    out = [None]
    dist.scatter_object_list(out, [[who] for who in range(size)] if rank == size - 1 else None, src=size - 1)
    assert out == [[rank]]
    if size > 1 and rank == 0:
        dist.send_object_list([{"step": 3}, (1, 2)], 1)
    if size > 1 and rank == 1:
        got = [None, None]
        assert dist.recv_object_list(got) == 0 and got == [{"step": 3}, (1, 2)]
    metrics = {"hits": {1, rank}, "kinds": frozenset("ab"), "mean": np.float32(rank), "when": np.datetime64("2020-01-01"),
               "table": np.full((rank, 2), 1 + 2j), "fortran": np.arange(6).reshape(2, 3).T}  # fmt: skip
    dist.all_gather_object(said, metrics)
    for who, got in enumerate(said):
        assert got["hits"] == {1, who} and got["kinds"] == frozenset("ab") and got["when"] == metrics["when"]
        assert got["mean"] == who and got["mean"].dtype == np.float32 and isinstance(got["mean"], np.generic)
        assert got["table"].shape == (who, 2) and (got["table"] == 1 + 2j).all() and got["table"].flags.writeable
        assert (got["fortran"] == metrics["fortran"]).all()
    for wrong in (object(), range(2), np.array([object()])):
        try:
            dist.all_gather_object(said, wrong)
        except TypeError as error:
            assert "cannot send" in str(error)
        else:
            raise AssertionError(wrong)


def groups():
    everyone = dist.new_group()
    last = dist.new_group([size - 1])
    assert dist.get_world_size(everyone) == size and dist.get_rank(everyone) == rank
    if rank == size - 1:
        assert dist.get_rank(last) == 0 and dist.get_process_group_ranks(last) == [size - 1]
        x = genesis.ones(2)
        dist.all_reduce(x, group=last)
        equal(x, np.ones(2))
    else:
        assert last is dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(last) == -1
    backwards = dist.new_group(list(reversed(range(size))), sort_ranks=False)
    assert dist.get_rank(backwards) == size - 1 - rank
    assert dist.get_global_rank(backwards, 0) == size - 1 and dist.get_group_rank(backwards, 0) == size - 1
    x = genesis.full((1,), float(rank))
    dist.broadcast(x, size - 1, group=backwards)
    assert x.item() == size - 1
    dist.broadcast(x, group=backwards, group_src=size - 1)
    own, every = dist.new_subgroups(group_size=1)
    assert len(every) == size and dist.get_process_group_ranks(own) == [rank] and every[rank] is own
    own, every = dist.new_subgroups_by_enumeration([[size - 1]])
    assert (own is None) == (rank < size - 1) and len(every) == 1
    assert dist.get_world_size(dist.new_subgroups()[0]) == size
    for wrong in (lambda: dist.new_subgroups(size + 1), lambda: dist.new_subgroups_by_enumeration([[0], [0]])):
        refused(ValueError, "groups", wrong)
    dist.destroy_process_group(backwards)
    try:
        dist.all_reduce(x, group=backwards)
    except RuntimeError as error:
        assert "has ended\n  try: new_group(ranks)" in str(error), error
    else:
        raise AssertionError("a group that has ended")


def in_pieces():
    """What is combined in pieces: some ranks wait for one call after the other, others go on meanwhile."""
    for elements in (2**20 * size - 1, 2**20 * size + 1, 5 * 2**20 + 3):
        counted = genesis.arange(float(elements)) % 1000
        x = counted + rank
        y = x.double()[: elements // 2] * 2
        if rank % 2:
            first, second = dist.all_reduce(x, async_op=True), dist.all_reduce(y, async_op=True)
            second.wait()
            first.wait()
        else:
            dist.all_reduce(x)
            dist.all_reduce(y)
        wanted = counted * size + sum(range(size))
        equal(x, wanted, "in pieces")
        equal(y, wanted.double()[: elements // 2] * 2, "in pieces, of float64")


for check in (
    reductions,
    rounding,
    extremes_of_special_floats,
    moves,
    moves_of_stored_numbers,
    exchanges,
    layouts,
    of_nothing,
    in_pieces,
    sums_in_tree,
    works,
    many_at_once,
    agreements,
    messages,
    objects,
    groups,
):
    check()
dist.destroy_process_group()
assert not dist.is_initialized()
print(f"rank {rank} is done")
