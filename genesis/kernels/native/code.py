"""LLVM code that works off tables of phases.

A row of a table is a phase: ``{void f(ptr args, i64 chunk), ptr args, i64 chunks}``. Phases are done one after the
other. The *ticket* is a number whose upper 40 bits count the phases and whose lower 24 bits are the chunks that are left
of this one. Who wants a chunk reads the ticket, then the row, which the caller has copied beside it, and then takes one
off the ticket by compare and exchange. If that succeeds the row was this phase's: it is overwritten after all of its
chunks are done, and no ticket comes twice. So workers look at nothing but the control block, which is there as long as
the process, and tables may go as soon as ``run`` returns.

The caller takes chunks from the first one on, workers from the last one back: in neighbouring phases that go through the
same rows a thread so meets most of what it has in its cache.

Nobody waits for a worker that holds no chunk. Who finds nothing to do looks again for `SPIN` seconds and then sleeps
until the other side wakes it. Either says that it sleeps before it looks for the last time, and the other writes before
it looks for sleepers, so no call is missed.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

SPIN = 50e-6
CHUNKS = 1 << 23  # a phase has fewer
ARITY = 32  # arguments of a function whose slices are chunks, at most

# words of the control block; what different threads write is on lines of its own
TICKET, FUNCTION, ARGUMENTS, COUNT, HELPERS = range(5)
COMPLETED, TAKEN, SLEEPERS, CALLS, BUSY, WAITING = 16, 24, 32, 33, 48, 64
SPINS, WAIT, WAKE = 80, 81, 82
WORDS = 96
INDEX, STOP, OWN_WORDS = 0, 1, 16  # of a worker


class System(NamedTuple):
    """How threads sleep and are woken: functions of the C library, and calls of them."""

    functions: tuple[str, ...]
    wait: str  # while the number at %word is %value
    wake: str  # so many as %count that sleep at %word
    relax: str


_LINUX = (
    """
  %r = call i64 (i64, ...) %f(i64 NUMBER, ptr %word, i64 128, i32 %value, ptr null)""",
    """
  %r = call i64 (i64, ...) %f(i64 NUMBER, ptr %word, i64 129, i64 %count)""",
)
_DARWIN = """
  %r = call i32 %f(i32 16777217, ptr %word, i64 %wide, i32 0)""", """
  %r = call i32 %f(i32 16777473, ptr %word, i64 0)"""  # fmt: skip


def system(platform: str = sys.platform, machine: str = "x86_64") -> System | None:
    """How it is done here; None if that is not known."""
    arm = machine in ("arm64", "aarch64")
    if not arm and machine not in ("x86_64", "amd64", "AMD64"):
        return None
    relax = "call void @llvm.aarch64.hint(i32 1)" if arm else "call void @llvm.x86.sse2.pause()"
    if platform == "linux":
        wait, wake = (text.replace("NUMBER", "98" if arm else "202") for text in _LINUX)
        return System(("syscall", "syscall"), wait, wake, relax)
    if platform == "darwin":
        return System(("__ulock_wait", "__ulock_wake"), *_DARWIN, relax)
    return None


NO_SYSTEM = System((), "", "", "fence seq_cst")  # without workers


def module(system: System) -> str:
    """The functions ``run``, ``run_block``, ``slice``, ``spread``, ``worker``, ``wake`` and ``spin``; their code names the words of the control block."""
    text = _CODE.replace("RELAX", system.relax).replace("SYSTEM_WAIT", system.wait).replace("SYSTEM_WAKE", system.wake)
    for name in ("TICKET", "FUNCTION", "ARGUMENTS", "COUNT", "HELPERS", "COMPLETED", "TAKEN", "SLEEPERS", "CALLS", "BUSY",
                 "WAITING", "SPINS", "WAIT", "WAKE", "INDEX", "STOP"):  # fmt: skip
        text = text.replace(f"i64 {name}\n", f"i64 {globals()[name]}\n")
    words = range(ARITY)
    loads = [f"  %at{i} = getelementptr i64, ptr %words, i64 {i}\n  %x{i} = load i64, ptr %at{i}" for i in words]
    text = text.replace("LOADS", "\n".join(loads)).replace("GIVEN", ", ".join(f"i64 %x{i}" for i in words))
    text = text.replace("ARITY", str(ARITY)).replace("BYTES", str(8 * ARITY))
    declared = system.relax.replace("call", "declare").replace("i32 1", "i32") if "call" in system.relax else ""
    return f"{declared}\n{text}"


_CODE = """
%row = type { ptr, ptr, i64 }

define internal void @sleep_at(ptr %ctl, ptr %word, i32 %value) noinline {
  %at = getelementptr i64, ptr %ctl, i64 WAIT
  %f = load ptr, ptr %at
  %wide = zext i32 %value to i64SYSTEM_WAIT
  ret void
}

define internal void @wake_at(ptr %ctl, ptr %word, i64 %count) noinline {
  %at = getelementptr i64, ptr %ctl, i64 WAKE
  %f = load ptr, ptr %at
  %wide = add i64 %count, 0SYSTEM_WAKE
  ret void
}

; wake so many workers
define void @wake(ptr %ctl, i64 %count) noinline {
  %calls = getelementptr i64, ptr %ctl, i64 CALLS
  %before = atomicrmw add ptr %calls, i32 1 seq_cst
  call void @wake_at(ptr %ctl, ptr %calls, i64 %count)
  ret void
}

; what looking n times takes is measured with this
define void @spin(ptr %ctl, i64 %n) {
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %look ]
  %ticket = load atomic i64, ptr %ctl acquire, align 8
  RELAX
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %look, label %done
done:
  ret void
}

; all chunks of all phases, by this thread
define internal void @alone(ptr %table, i64 %n) {
entry:
  %any = icmp ugt i64 %n, 0
  br i1 %any, label %phase, label %done
phase:
  %i = phi i64 [ 0, %entry ], [ %next_i, %next ]
  %f_at = getelementptr %row, ptr %table, i64 %i
  %f = load ptr, ptr %f_at
  %args_at = getelementptr %row, ptr %table, i64 %i, i32 1
  %args = load ptr, ptr %args_at
  %count_at = getelementptr %row, ptr %table, i64 %i, i32 2
  %count = load i64, ptr %count_at
  %some = icmp ugt i64 %count, 0
  br i1 %some, label %chunk, label %next
chunk:
  %c = phi i64 [ 0, %phase ], [ %next_c, %chunk ]
  call void %f(ptr %args, i64 %c)
  %next_c = add i64 %c, 1
  %more_c = icmp ult i64 %next_c, %count
  br i1 %more_c, label %chunk, label %next
next:
  %next_i = add i64 %i, 1
  %more = icmp ult i64 %next_i, %n
  br i1 %more, label %phase, label %done
done:
  ret void
}

; n phases whose rows are followed by what their arguments, counted from the first row, are
define void @run_block(ptr %ctl, ptr %block, i64 %n, i64 %threads) {
entry:
  %table = alloca %row, i64 %n
  br label %copy
copy:
  %i = phi i64 [ 0, %entry ], [ %next, %copy ]
  %from = getelementptr %row, ptr %block, i64 %i
  %to = getelementptr %row, ptr %table, i64 %i
  %f = load ptr, ptr %from
  store ptr %f, ptr %to
  %offset_at = getelementptr %row, ptr %from, i64 0, i32 1
  %offset = load i64, ptr %offset_at
  %args = getelementptr i8, ptr %block, i64 %offset
  %args_at = getelementptr %row, ptr %to, i64 0, i32 1
  store ptr %args, ptr %args_at
  %count_at = getelementptr %row, ptr %from, i64 0, i32 2
  %count = load i64, ptr %count_at
  %count_to = getelementptr %row, ptr %to, i64 0, i32 2
  store i64 %count, ptr %count_to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %copy, label %ready
ready:
  call void @run(ptr %ctl, ptr %table, i64 %n, i64 %threads)
  ret void
}

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

; n phases; of two callers at a time the second works alone
define void @run(ptr %ctl, ptr %table, i64 %n, i64 %threads) {
entry:
  %several = icmp ugt i64 %threads, 1
  br i1 %several, label %enter, label %by_itself
enter:
  %busy = getelementptr i64, ptr %ctl, i64 BUSY
  %exchanged = cmpxchg ptr %busy, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue { i64, i1 } %exchanged, 1
  br i1 %free, label %begin, label %by_itself
by_itself:
  call void @alone(ptr %table, i64 %n)
  ret void
begin:
  %helpers = sub i64 %threads, 1
  %now_f = getelementptr i64, ptr %ctl, i64 FUNCTION
  %now_args = getelementptr i64, ptr %ctl, i64 ARGUMENTS
  %now_count = getelementptr i64, ptr %ctl, i64 COUNT
  %now_helpers = getelementptr i64, ptr %ctl, i64 HELPERS
  %completed = getelementptr i64, ptr %ctl, i64 COMPLETED
  %taken_at = getelementptr i64, ptr %ctl, i64 TAKEN
  %sleepers = getelementptr i64, ptr %ctl, i64 SLEEPERS
  %waiting = getelementptr i64, ptr %ctl, i64 WAITING
  %spins_at = getelementptr i64, ptr %ctl, i64 SPINS
  %spins = load i64, ptr %spins_at
  %first_ticket = load atomic i64, ptr %ctl monotonic, align 8
  %before = lshr i64 %first_ticket, 24
  %done_before = load atomic i64, ptr %completed monotonic, align 8
  %any = icmp ugt i64 %n, 0
  br i1 %any, label %phase, label %leave
phase:
  %i = phi i64 [ 0, %begin ], [ %next_i, %next ]
  %number = phi i64 [ %before, %begin ], [ %next_number, %next ]
  %total = phi i64 [ %done_before, %begin ], [ %next_total, %next ]
  %f_at = getelementptr %row, ptr %table, i64 %i
  %f = load ptr, ptr %f_at
  %args_at = getelementptr %row, ptr %table, i64 %i, i32 1
  %args = load ptr, ptr %args_at
  %count_at = getelementptr %row, ptr %table, i64 %i, i32 2
  %count = load i64, ptr %count_at
  %parallel = icmp ugt i64 %count, 1
  br i1 %parallel, label %open, label %single
single:
  %some = icmp eq i64 %count, 1
  br i1 %some, label %serial, label %next
serial:
  call void %f(ptr %args, i64 0)
  br label %next
open:
  %this = add i64 %number, 1
  %end = add i64 %total, %count
  store atomic ptr %f, ptr %now_f release, align 8
  store atomic ptr %args, ptr %now_args release, align 8
  store atomic i64 %count, ptr %now_count release, align 8
  store atomic i64 %helpers, ptr %now_helpers release, align 8
  store atomic i64 0, ptr %taken_at release, align 8
  %shifted = shl i64 %this, 24
  %opened = or i64 %shifted, %count
  store atomic i64 %opened, ptr %ctl seq_cst, align 8
  %asleep = load atomic i64, ptr %sleepers seq_cst, align 8
  %sleep = icmp ne i64 %asleep, 0
  br i1 %sleep, label %call, label %take
call:
  %others = sub i64 %count, 1
  %few = icmp ult i64 %others, %helpers
  %wanted = select i1 %few, i64 %others, i64 %helpers
  call void @wake(ptr %ctl, i64 %wanted)
  br label %take
take:
  %c = phi i64 [ 0, %open ], [ 0, %call ], [ %c, %grab ], [ %next_c, %work ]
  %ticket = load atomic i64, ptr %ctl acquire, align 8
  %left = and i64 %ticket, 16777215
  %open_now = icmp ne i64 %left, 0
  br i1 %open_now, label %grab, label %wait
grab:
  %following = sub i64 %ticket, 1
  %taken = cmpxchg ptr %ctl, i64 %ticket, i64 %following seq_cst seq_cst
  %won = extractvalue { i64, i1 } %taken, 1
  br i1 %won, label %work, label %take
work:
  call void %f(ptr %args, i64 %c)
  %next_c = add i64 %c, 1
  %already = atomicrmw add ptr %completed, i64 1 seq_cst
  br label %take
wait:
  %spun = phi i64 [ 0, %take ], [ %next_spun, %again ], [ 0, %awake ]
  %by_now = load atomic i64, ptr %completed seq_cst, align 8
  %ended = icmp eq i64 %by_now, %end
  br i1 %ended, label %next, label %not_yet
not_yet:
  %next_spun = add i64 %spun, 1
  %long = icmp ugt i64 %next_spun, %spins
  br i1 %long, label %tired, label %again
again:
  RELAX
  br label %wait
tired:
  store atomic i32 1, ptr %waiting seq_cst, align 4
  %at_last = load atomic i64, ptr %completed seq_cst, align 8
  %ended_now = icmp eq i64 %at_last, %end
  br i1 %ended_now, label %awake, label %rest
rest:
  call void @sleep_at(ptr %ctl, ptr %waiting, i32 1)
  br label %awake
awake:
  store atomic i32 0, ptr %waiting seq_cst, align 4
  br label %wait
next:
  %next_number = phi i64 [ %number, %single ], [ %number, %serial ], [ %this, %wait ]
  %next_total = phi i64 [ %total, %single ], [ %total, %serial ], [ %end, %wait ]
  %next_i = add i64 %i, 1
  %more = icmp ult i64 %next_i, %n
  br i1 %more, label %phase, label %leave
leave:
  store atomic i64 0, ptr %busy seq_cst, align 8
  ret void
}

; take chunks until it is told to stop
define void @worker(ptr %ctl, ptr %own) {
entry:
  %now_f = getelementptr i64, ptr %ctl, i64 FUNCTION
  %now_args = getelementptr i64, ptr %ctl, i64 ARGUMENTS
  %now_count = getelementptr i64, ptr %ctl, i64 COUNT
  %now_helpers = getelementptr i64, ptr %ctl, i64 HELPERS
  %completed = getelementptr i64, ptr %ctl, i64 COMPLETED
  %taken_at = getelementptr i64, ptr %ctl, i64 TAKEN
  %sleepers = getelementptr i64, ptr %ctl, i64 SLEEPERS
  %calls = getelementptr i64, ptr %ctl, i64 CALLS
  %waiting = getelementptr i64, ptr %ctl, i64 WAITING
  %spins_at = getelementptr i64, ptr %ctl, i64 SPINS
  %spins = load i64, ptr %spins_at
  %index_at = getelementptr i64, ptr %own, i64 INDEX
  %index = load i64, ptr %index_at
  %stop_at = getelementptr i64, ptr %own, i64 STOP
  br label %look
look:
  %idle = phi i64 [ 0, %entry ], [ %next_idle, %pause ], [ 0, %did ], [ 0, %awake ]
  %ticket = load atomic i64, ptr %ctl seq_cst, align 8
  %left = and i64 %ticket, 16777215
  %open = icmp ne i64 %left, 0
  br i1 %open, label %allowed, label %nothing
allowed:
  %helpers = load atomic i64, ptr %now_helpers acquire, align 8
  %helping = icmp ult i64 %index, %helpers
  br i1 %helping, label %grab, label %nothing
grab:
  %f = load atomic ptr, ptr %now_f acquire, align 8
  %args = load atomic ptr, ptr %now_args acquire, align 8
  %count = load atomic i64, ptr %now_count acquire, align 8
  %following = sub i64 %ticket, 1
  %exchanged = cmpxchg ptr %ctl, i64 %ticket, i64 %following seq_cst seq_cst
  %won = extractvalue { i64, i1 } %exchanged, 1
  br i1 %won, label %work, label %did
work:
  %before = atomicrmw add ptr %taken_at, i64 1 seq_cst
  %behind = sub i64 %count, %before
  %c = sub i64 %behind, 1
  call void %f(ptr %args, i64 %c)
  %already = atomicrmw add ptr %completed, i64 1 seq_cst
  %waits = load atomic i32, ptr %waiting seq_cst, align 4
  %awaited = icmp ne i32 %waits, 0
  br i1 %awaited, label %tell, label %did
tell:
  store atomic i32 0, ptr %waiting seq_cst, align 4
  call void @wake_at(ptr %ctl, ptr %waiting, i64 1)
  br label %did
did:
  br label %look
nothing:
  %next_idle = add i64 %idle, 1
  %long = icmp ugt i64 %next_idle, %spins
  br i1 %long, label %tired, label %pause
pause:
  RELAX
  br label %look
tired:
  %call = load atomic i32, ptr %calls seq_cst, align 4
  %asleep = atomicrmw add ptr %sleepers, i64 1 seq_cst
  %stop = load atomic i64, ptr %stop_at seq_cst, align 8
  %stopped = icmp ne i64 %stop, 0
  %ticket_now = load atomic i64, ptr %ctl seq_cst, align 8
  %same = icmp eq i64 %ticket_now, %ticket
  %quiet = xor i1 %stopped, true
  %sleep = and i1 %same, %quiet
  br i1 %sleep, label %rest, label %awake
rest:
  call void @sleep_at(ptr %ctl, ptr %calls, i32 %call)
  br label %awake
awake:
  %asleep_before = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  br i1 %stopped, label %end, label %look
end:
  ret void
}
"""
