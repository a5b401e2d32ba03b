"""Attention a tile at a time, in Triton's language: scores are never in memory (Dao et al. 2022).

Exponentials are powers of two. Of each row the forward keeps the (natural) logarithm of the sum of all, from which the backward
computes the weights again; ``delta`` is the sum of ``out * g`` of each row. One kernel of the backward goes along the
queries for the gradients of keys and values, another along the keys for that of the queries: nothing is added to by two
programs, so the gradients are the same bits each time.
"""

HEAD = """
import triton
import triton.language as tl

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)
LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def matrix(x, rows, columns, many, wide, step):
    inside = (rows[:, None] < many) & (columns[None, :] < wide)
    return tl.load(x + rows[:, None].to(tl.int64) * step + columns[None, :], mask=inside, other=0.0)


@triton.jit
def keep(x, result, rows, columns, many, wide, step):
    inside = (rows[:, None] < many) & (columns[None, :] < wide)
    tl.store(x + rows[:, None].to(tl.int64) * step + columns[None, :], result.to(x.dtype.element_ty), mask=inside)


"""

FORWARD = """
@triton.jit
def kernel(q, k, v, out, total, scale, heads, group, M, N, D, E, qz, qh, qm, kz, kh, kn, vz, vh, vn, oz, oh, om):
    first = tl.program_id(0) * {m}
    z = (tl.program_id(1) // heads).to(tl.int64)
    h = (tl.program_id(1) % heads).to(tl.int64)
    factor = scale.to(tl.float32) * LOG2E
    rows = first + tl.arange(0, {m})
    d = tl.arange(0, {d})
    e = tl.arange(0, {e})
    query = matrix(q + z * qz + h * qh, rows, d, M, D, qm)
    best = tl.full([{m}], float("-inf"), tl.float32)
    sums = tl.zeros([{m}], tl.float32)
    result = tl.zeros([{m}, {e}], tl.float32)
    keys = k + z * kz + h // group * kh
    values = v + z * vz + h // group * vh
    for start in range(0, {last}, {n}):
        columns = start + tl.arange(0, {n})
        key = matrix(keys, columns, d, N, D, kn)
        score = tl.dot(query, tl.trans(key), input_precision="ieee") * factor
        score = tl.where({seen}, score, float("-inf"))
        larger = tl.maximum(best, tl.max(score, 1))
        weight = tl.exp2(score - larger[:, None])
        less = tl.exp2(best - larger)
        sums = sums * less + tl.sum(weight, 1)
        value = matrix(values, columns, e, N, E, vn)
        result = tl.dot(weight.to(value.dtype), value, result * less[:, None], input_precision="ieee")
        best = larger
    result = result / sums[:, None]
    keep(out + z * oz + h * oh, result, rows, e, M, E, om)
    row = tl.program_id(1).to(tl.int64) * M + rows
    tl.store(total + row, (best + tl.log2(sums)) * LN2, mask=rows < M)
"""

DELTA = """
@triton.jit
def kernel(out, g, delta, M, E, heads, oz, oh, om, gz, gh, gm):
    rows = tl.program_id(0) * {m} + tl.arange(0, {m})
    z = (tl.program_id(1) // heads).to(tl.int64)
    h = (tl.program_id(1) % heads).to(tl.int64)
    e = tl.arange(0, {e})
    row = tl.program_id(1).to(tl.int64) * M
    x = matrix(out + z * oz + h * oh, rows, e, M, E, om).to(tl.float32)
    y = matrix(g + z * gz + h * gh, rows, e, M, E, gm).to(tl.float32)
    tl.store(delta + row + rows, tl.sum(x * y, 1), mask=rows < M)
"""

KEYS = """
@triton.jit
def kernel(q, k, v, g, total, delta, gk, gv, scale, heads, group, M, N, D, E, qz, qh, qm, kz, kh, kn, vz, vh, vn, gz, gh, gm,
           gkz, gkh, gkn, gvz, gvh, gvn):
    first = tl.program_id(0) * {n}
    shared = heads // group
    z = (tl.program_id(1) // shared).to(tl.int64)
    h = (tl.program_id(1) % shared).to(tl.int64)
    factor = scale.to(tl.float32) * LOG2E
    columns = first + tl.arange(0, {n})
    d = tl.arange(0, {d})
    e = tl.arange(0, {e})
    key = matrix(k + z * kz + h * kh, columns, d, N, D, kn)
    value = matrix(v + z * vz + h * vh, columns, e, N, E, vn)
    of_keys = tl.zeros([{n}, {d}], tl.float32)
    of_values = tl.zeros([{n}, {e}], tl.float32)
    for j in range(0, group):
        own = h * group + j
        row = (z * heads + own) * M
        for start in range({begin}, M, {m}):
            rows = start + tl.arange(0, {m})
            query = matrix(q + z * qz + own * qh, rows, d, M, D, qm)
            grad = matrix(g + z * gz + own * gh, rows, e, M, E, gm)
            sums = tl.load(total + row + rows, mask=rows < M, other=0.0) * LOG2E
            along = tl.load(delta + row + rows, mask=rows < M, other=0.0)
            score = tl.dot(key, tl.trans(query), input_precision="ieee") * factor
            weight = tl.where({seen}, tl.exp2(score - sums[None, :]), 0.0)
            of_values = tl.dot(weight.to(grad.dtype), grad, of_values, input_precision="ieee")
            change = weight * (tl.dot(value, tl.trans(grad), input_precision="ieee") - along[None, :])
            of_keys = tl.dot(change.to(query.dtype), query, of_keys, input_precision="ieee")
    keep(gk + z * gkz + h * gkh, of_keys * scale.to(tl.float32), columns, d, N, D, gkn)
    keep(gv + z * gvz + h * gvh, of_values, columns, e, N, E, gvn)
"""

QUERIES = """
@triton.jit
def kernel(q, k, v, g, total, delta, gq, scale, heads, group, M, N, D, E, qz, qh, qm, kz, kh, kn, vz, vh, vn, gz, gh, gm,
           gqz, gqh, gqm):
    first = tl.program_id(0) * {m}
    z = (tl.program_id(1) // heads).to(tl.int64)
    h = (tl.program_id(1) % heads).to(tl.int64)
    factor = scale.to(tl.float32) * LOG2E
    rows = first + tl.arange(0, {m})
    d = tl.arange(0, {d})
    e = tl.arange(0, {e})
    row = tl.program_id(1).to(tl.int64) * M
    query = matrix(q + z * qz + h * qh, rows, d, M, D, qm)
    grad = matrix(g + z * gz + h * gh, rows, e, M, E, gm)
    sums = tl.load(total + row + rows, mask=rows < M, other=0.0) * LOG2E
    along = tl.load(delta + row + rows, mask=rows < M, other=0.0)
    result = tl.zeros([{m}, {d}], tl.float32)
    keys = k + z * kz + h // group * kh
    values = v + z * vz + h // group * vh
    for start in range(0, {last}, {n}):
        columns = start + tl.arange(0, {n})
        key = matrix(keys, columns, d, N, D, kn)
        value = matrix(values, columns, e, N, E, vn)
        score = tl.dot(query, tl.trans(key), input_precision="ieee") * factor
        weight = tl.where({seen}, tl.exp2(score - sums[:, None]), 0.0)
        change = weight * (tl.dot(grad, tl.trans(value), input_precision="ieee") - along[:, None])
        result = tl.dot(change.to(key.dtype), key, result, input_precision="ieee")
    keep(gq + z * gqz + h * gqh, result * scale.to(tl.float32), rows, d, M, D, gqm)
"""
