"""From a program to machine code that runs it in one call.

`phases`    what a compiled program is made of: kernels, and when they run
`parts`     what a call is, one element at a time: `pointwise`, `reductions`, `indexing`, `fused`, `steps` say it of each op
`groups`    parts that run together
`loops`     the language that kernels are written in; `assemble` makes loops of a group
`emit_llvm` prints loops as LLVM code, with the functions of `scalar_code`; `emit_python` runs them over NumPy arrays
`many`      the same loop over many tensors; `products` (`tiles`, `pairs`), `transposes`, `attention`: kernels of matrices
`regions`   which calls run together
`rounds`    programs that go over a batch, computed for some of its elements at a time; `batches`: how it goes through ops
`plan`      where values lie in memory; `copies` has the kernels that bring them where they have to be at the end
`compiled`  a planned program as plain data; `tables` makes it
`code`      its kernels as one piece of code, and what a call begins with
`runner`    running it; `layouts`: arrays as specs say
`step`      the whole program as one call; `cache` keeps steps on disk
"""

from genesis.base.late import late_modules

# a step that is kept on disk needs none of these
late_modules(__name__, "regions stacked plan tables explain halves pairs")
