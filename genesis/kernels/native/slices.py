"""LLVM code that divides one call into chunks: slices of what a function does, and parts of a loop of a NumPy ufunc.

Both fill in a block that says what a chunk is, and have `code`'s ``run`` do it as one phase.
"""

from __future__ import annotations

ARITY = 32  # arguments of a function whose slices are chunks, at most


def text() -> str:
    """The functions ``slice`` and ``spread``; of what is defined elsewhere they call ``run``, with rows of type ``%row``."""
    words = range(ARITY)
    loads = [f"  %at{i} = getelementptr i64, ptr %words, i64 {i}\n  %x{i} = load i64, ptr %at{i}" for i in words]
    code = _CODE.replace("LOADS", "\n".join(loads)).replace("GIVEN", ", ".join(f"i64 %x{i}" for i in words))
    return code.replace("ARITY", str(ARITY)).replace("BYTES", str(8 * ARITY))


_CODE = """
; one slice of what a function of integers and addresses does. The block: the function, the size of all, the number of
; slices, where among the arguments the first and the last of a slice are, and two words for each argument: what it is for
; the slice 0, and what is added for every other. (A function does not look at arguments that it does not have.)
define void @slice(ptr %block, i64 %chunk) {
entry:
  %words = alloca [ARITY x i64]
  call void @llvm.memset.p0.i64(ptr %words, i8 0, i64 BYTES, i1 false)
  %f = load ptr, ptr %block
  %all_at = getelementptr i64, ptr %block, i64 1
  %all = load i64, ptr %all_at
  %slices_at = getelementptr i64, ptr %block, i64 2
  %slices = load i64, ptr %slices_at
  %where_at = getelementptr i64, ptr %block, i64 3
  %where = load i64, ptr %where_at
  %count_at = getelementptr i64, ptr %block, i64 4
  %count = load i64, ptr %count_at
  br label %word
word:
  %i = phi i64 [ 0, %entry ], [ %next_i, %word ]
  %twice = mul i64 %i, 2
  %value_at = getelementptr i64, ptr %count_at, i64 %twice
  %value_here = getelementptr i64, ptr %value_at, i64 1
  %value = load i64, ptr %value_here
  %step_here = getelementptr i64, ptr %value_at, i64 2
  %step = load i64, ptr %step_here
  %moved = mul i64 %step, %chunk
  %sum = add i64 %value, %moved
  %to = getelementptr i64, ptr %words, i64 %i
  store i64 %sum, ptr %to
  %next_i = add i64 %i, 1
  %more = icmp ult i64 %next_i, %count
  br i1 %more, label %word, label %go
go:
  %first_all = mul i64 %all, %chunk
  %first = udiv i64 %first_all, %slices
  %following = add i64 %chunk, 1
  %last_all = mul i64 %all, %following
  %last = udiv i64 %last_all, %slices
  %first_at = getelementptr i64, ptr %words, i64 %where
  store i64 %first, ptr %first_at
  %last_at = getelementptr i64, ptr %first_at, i64 1
  store i64 %last, ptr %last_at
LOADS
  call void %f(GIVEN)
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; a loop of a NumPy ufunc, in chunks. %given: the loop, how many operands and sizes it has, steps of a chunk at least, and
; the words of `runtime.current`
define void @spread(ptr %args, ptr %sizes, ptr %steps, ptr %given) {
entry:
  %block = alloca [5 x ptr]
  %table = alloca %row
  %loop = load ptr, ptr %given
  %count_at = getelementptr i64, ptr %given, i64 2
  %count = load i64, ptr %count_at
  %grain_at = getelementptr i64, ptr %given, i64 3
  %grain = load i64, ptr %grain_at
  %current_at = getelementptr i64, ptr %given, i64 4
  %current = load ptr, ptr %current_at
  %control_at = getelementptr i64, ptr %current, i64 1
  %control = load ptr, ptr %control_at
  %threads_at = getelementptr i64, ptr %current, i64 2
  %threads = load i64, ptr %threads_at
  %n = load i64, ptr %sizes
  br label %size
size:
  %i = phi i64 [ 1, %entry ], [ %next_i, %inner ]
  %work = phi i64 [ %n, %entry ], [ %more_work, %inner ]
  %is_inner = icmp ult i64 %i, %count
  br i1 %is_inner, label %inner, label %known
inner:
  %size_at = getelementptr i64, ptr %sizes, i64 %i
  %size_of = load i64, ptr %size_at
  %more_work = mul i64 %work, %size_of
  %next_i = add i64 %i, 1
  br label %size
known:
  %parts = udiv i64 %work, %grain
  %enough = icmp ugt i64 %parts, 1
  %several = icmp ugt i64 %threads, 1
  %both = and i1 %enough, %several
  br i1 %both, label %divide, label %whole
whole:
  call void %loop(ptr %args, ptr %sizes, ptr %steps, ptr null)
  ret void
divide:
  %most = shl i64 %threads, 2
  %few = icmp ult i64 %parts, %most
  %chunks = select i1 %few, i64 %parts, i64 %most
  %above = add i64 %n, %chunks
  %above_one = sub i64 %above, 1
  %share = udiv i64 %above_one, %chunks
  %plain = icmp eq i64 %count, 1
  %padded = add i64 %share, 63
  %rounded = and i64 %padded, -64
  %per = select i1 %plain, i64 %rounded, i64 %share
  %last = add i64 %n, %per
  %last_one = sub i64 %last, 1
  %needed = udiv i64 %last_one, %per
  store ptr %given, ptr %block
  %block_args = getelementptr ptr, ptr %block, i64 1
  store ptr %args, ptr %block_args
  %block_sizes = getelementptr ptr, ptr %block, i64 2
  store ptr %sizes, ptr %block_sizes
  %block_steps = getelementptr ptr, ptr %block, i64 3
  store ptr %steps, ptr %block_steps
  %block_per = getelementptr ptr, ptr %block, i64 4
  store i64 %per, ptr %block_per
  store ptr @part, ptr %table
  %row_args = getelementptr %row, ptr %table, i64 0, i32 1
  store ptr %block, ptr %row_args
  %row_count = getelementptr %row, ptr %table, i64 0, i32 2
  store i64 %needed, ptr %row_count
  call void @run(ptr %control, ptr %table, i64 1, i64 %threads)
  ret void
}

define internal void @part(ptr %block, i64 %chunk) {
entry:
  %args = alloca [32 x ptr]
  %sizes = alloca [32 x i64]
  %given = load ptr, ptr %block
  %loop = load ptr, ptr %given
  %operands_at = getelementptr i64, ptr %given, i64 1
  %operands = load i64, ptr %operands_at
  %count_at = getelementptr i64, ptr %given, i64 2
  %count = load i64, ptr %count_at
  %all_args_at = getelementptr ptr, ptr %block, i64 1
  %all_args = load ptr, ptr %all_args_at
  %all_sizes_at = getelementptr ptr, ptr %block, i64 2
  %all_sizes = load ptr, ptr %all_sizes_at
  %steps_at = getelementptr ptr, ptr %block, i64 3
  %steps = load ptr, ptr %steps_at
  %per_at = getelementptr ptr, ptr %block, i64 4
  %per = load i64, ptr %per_at
  %first = mul i64 %chunk, %per
  br label %operand
operand:
  %i = phi i64 [ 0, %entry ], [ %next_i, %operand ]
  %from = getelementptr ptr, ptr %all_args, i64 %i
  %base = load ptr, ptr %from
  %step_at = getelementptr i64, ptr %steps, i64 %i
  %step = load i64, ptr %step_at
  %offset = mul i64 %first, %step
  %begin = getelementptr i8, ptr %base, i64 %offset
  %to = getelementptr ptr, ptr %args, i64 %i
  store ptr %begin, ptr %to
  %next_i = add i64 %i, 1
  %more_i = icmp ult i64 %next_i, %operands
  br i1 %more_i, label %operand, label %size
size:
  %j = phi i64 [ 0, %operand ], [ %next_j, %size ]
  %size_from = getelementptr i64, ptr %all_sizes, i64 %j
  %size_of = load i64, ptr %size_from
  %size_to = getelementptr i64, ptr %sizes, i64 %j
  store i64 %size_of, ptr %size_to
  %next_j = add i64 %j, 1
  %more_j = icmp ult i64 %next_j, %count
  br i1 %more_j, label %size, label %go
go:
  %n = load i64, ptr %all_sizes
  %left = sub i64 %n, %first
  %short = icmp ult i64 %left, %per
  %here = select i1 %short, i64 %left, i64 %per
  store i64 %here, ptr %sizes
  call void %loop(ptr %args, ptr %sizes, ptr %steps, ptr null)
  ret void
}
"""
