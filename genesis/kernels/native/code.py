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
it looks for sleepers, so no call is missed. (On which processor it then wakes up says `apart`.)
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from genesis.kernels.native import apart, slices

SPIN = 50e-6
CHUNKS = 1 << 23  # a phase has fewer

# words of the control block; what different threads write is on lines of its own
TICKET, FUNCTION, ARGUMENTS, COUNT, HELPERS = range(5)
COMPLETED, TAKEN, SLEEPERS, CALLS, BUSY, WAITING = 16, 24, 32, 33, 48, 64
SPINS, WAIT, WAKE, CALLER = 80, 81, 82, 83
WORDS = 96
INDEX, STOP, OWN_WORDS = 0, 1, 16  # of a worker


class System(NamedTuple):
    """How threads sleep and are woken: functions of the C library, and calls of them."""

    functions: tuple[str, ...]
    wait: str  # while the number at %word is %value
    wake: str  # so many as %count that sleep at %word
    relax: str
    apart: str  # functions of `apart`


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
        return System(("syscall", "syscall"), wait, wake, relax, apart.text(platform, arm))
    if platform == "darwin":
        return System(("__ulock_wait", "__ulock_wake"), *_DARWIN, relax, apart.text(platform, arm))
    return None


NO_SYSTEM = System((), "", "", "fence seq_cst", apart.text("", False))  # without workers


def module(system: System) -> str:
    """The functions ``run``, ``run_block``, ``worker``, ``wake`` and ``spin``, whose code names the words of the control
    block, and those of `apart` and `slices`.
    """
    text = (
        (_CODE + system.apart)
        .replace("RELAX", system.relax)
        .replace("SYSTEM_WAIT", system.wait)
        .replace("SYSTEM_WAKE", system.wake)
    )
    for name in ("TICKET", "FUNCTION", "ARGUMENTS", "COUNT", "HELPERS", "COMPLETED", "TAKEN", "SLEEPERS", "CALLS", "BUSY",
                 "WAITING", "SPINS", "WAIT", "WAKE", "CALLER", "INDEX", "STOP"):  # fmt: skip
        text = text.replace(f"i64 {name}\n", f"i64 {globals()[name]}\n")
    declared = system.relax.replace("call", "declare").replace("i32 1", "i32") if "call" in system.relax else ""
    return f"{declared}\n{text}\n{slices.text()}"


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
  call void @here(ptr %ctl)
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
  call void @sleep_apart(ptr %ctl, ptr %calls, i32 %call)
  br label %awake
awake:
  %asleep_before = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  br i1 %stopped, label %end, label %look
end:
  ret void
}
"""
