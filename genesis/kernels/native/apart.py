"""LLVM code that keeps a worker off the processor of the thread that calls it.

The system may wake a worker on the processor of its caller although another has nothing to do (on virtual machines it
takes one that has slept for long for one that is not there). The caller does not sleep, so the worker waits for
milliseconds until it gets a turn or is moved, and the next time it is woken all begins anew. So the caller says on which
processor it is, and while a worker sleeps it may not be there; when it is awake it may be where it was allowed to be.
"""

from __future__ import annotations

_NUMBERS = {"GETCPU": (309, 168), "GETAFFINITY": (204, 123), "SETAFFINITY": (203, 122)}  # Linux: x86-64, arm64


def text(platform: str, arm: bool) -> str:
    """The functions ``here`` and ``sleep_apart``, which names words of the control block and calls ``sleep_at``."""
    code = _LINUX if platform == "linux" else _ELSEWHERE
    for name, numbers in _NUMBERS.items():
        code = code.replace(f"i64 {name},", f"i64 {numbers[arm]},")
    return code


_ELSEWHERE = """
define void @here(ptr %ctl) {
  ret void
}

define void @sleep_apart(ptr %ctl, ptr %word, i32 %value) {
  call void @sleep_at(ptr %ctl, ptr %word, i32 %value)
  ret void
}
"""

_LINUX = """
; the number of this processor, and one more; 0 if it is not known
define internal i32 @processor(ptr %f) {
  %cpu = alloca i32
  store i32 -1, ptr %cpu
  %refused = call i64 (i64, ...) %f(i64 GETCPU, ptr %cpu, ptr null, ptr null)
  %number = load i32, ptr %cpu
  %here = add i32 %number, 1
  ret i32 %here
}

; the caller is here
define void @here(ptr %ctl) noinline {
  %f_at = getelementptr i64, ptr %ctl, i64 WAKE
  %f = load ptr, ptr %f_at
  %here = call i32 @processor(ptr %f)
  %caller = getelementptr i64, ptr %ctl, i64 CALLER
  store atomic i32 %here, ptr %caller monotonic, align 4
  ret void
}

; this thread may be where it is allowed to be, but for one processor; what it may then, or none if nothing changes
define internal void @leave(ptr %f, ptr %allowed, i64 %size, i32 %processor, ptr %then) {
entry:
  %number = sub i32 %processor, 1
  %wide = zext i32 %number to i64
  %known = icmp ult i32 %number, 1024
  br i1 %known, label %move, label %done
move:
  call void @llvm.memcpy.p0.p0.i64(ptr %then, ptr %allowed, i64 128, i1 false)
  %word = lshr i64 %wide, 6
  %bit = and i64 %wide, 63
  %mask = shl i64 1, %bit
  %rest = xor i64 %mask, -1
  %word_at = getelementptr i64, ptr %then, i64 %word
  %before = load i64, ptr %word_at
  %without = and i64 %before, %rest
  store i64 %without, ptr %word_at
  %refused = call i64 (i64, ...) %f(i64 SETAFFINITY, i64 0, i64 %size, ptr %then)
  br label %done
done:
  ret void
}

; sleep while the number is the value, and awake on another processor than the caller's
define void @sleep_apart(ptr %ctl, ptr %word, i32 %value) noinline {
entry:
  %allowed = alloca i1024
  %then = alloca i1024
  %now = alloca i1024
  store i1024 0, ptr %allowed
  store i1024 0, ptr %then
  store i1024 0, ptr %now
  %f_at = getelementptr i64, ptr %ctl, i64 WAKE
  %f = load ptr, ptr %f_at
  %caller_at = getelementptr i64, ptr %ctl, i64 CALLER
  %caller = load atomic i32, ptr %caller_at monotonic, align 4
  %size = call i64 (i64, ...) %f(i64 GETAFFINITY, i64 0, i64 128, ptr %allowed)
  %answered = icmp sgt i64 %size, 0
  br i1 %answered, label %apart, label %anywhere
anywhere:
  call void @sleep_at(ptr %ctl, ptr %word, i32 %value)
  ret void
apart:
  call void @leave(ptr %f, ptr %allowed, i64 %size, i32 %caller, ptr %then)
  call void @sleep_at(ptr %ctl, ptr %word, i32 %value)
  %asked = call i64 (i64, ...) %f(i64 GETAFFINITY, i64 0, i64 128, ptr %now)
  %set = load i1024, ptr %then
  %found = load i1024, ptr %now
  %ours = icmp eq i1024 %set, %found
  br i1 %ours, label %awake, label %done ; else somebody else has said meanwhile where it may be
awake:
  %here = call i32 @processor(ptr %f)
  %caller_now = load atomic i32, ptr %caller_at monotonic, align 4
  %same = icmp eq i32 %here, %caller_now
  br i1 %same, label %move, label %back
move:
  call void @leave(ptr %f, ptr %allowed, i64 %size, i32 %here, ptr %then)
  br label %back
back:
  %refused = call i64 (i64, ...) %f(i64 SETAFFINITY, i64 0, i64 %size, ptr %allowed)
  br label %done
done:
  ret void
}
"""
