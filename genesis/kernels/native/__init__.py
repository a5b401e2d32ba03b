"""Work in phases and chunks, by several threads, in one native call.

`code`     the functions ``run`` and ``worker``, as LLVM code
`apart`    workers that sleep off the processor of their caller
`chunked`  calls of one function as chunks, with memory of their own
`runtime`  tables of phases, the workers, and running a table from Python
`pace`     by how many threads short work is done
"""

from genesis.base.late import late_modules

late_modules(__name__, "code runtime")
