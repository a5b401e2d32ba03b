"""Code for numbers in LLVM's language, and loops made of it; llvmlite compiles them.

`native`     machine code out of text, where llvmlite is installed; `elf` brings what is kept into memory without it
`values`     vectors of numbers, with the operators of Python, that write instructions
`functions`  exp, log, sin, erf and their relatives, made of these; `tables` has their coefficients
`activations` of neural networks, and their gradients; `steps` of optimizers
`nests`      loops within loops over vectors of float32: `sliding` has those of convolutions,
             `channels` of batch norm, `windows` of the gradient of max pooling
`products`   tiles of products of matrices, with `attention` made of them; `gemm`: their phases
`pairs`      of bfloat16 numbers, in the place of float32 numbers; `rates`: whether they pay
`draws`      words of random streams; `normals`: normal numbers of them
`loops`      NumPy ufuncs whose inner loop is such a function; `rows`: gufuncs of rows
"""

from genesis.base.late import late_modules

late_modules(
    __name__,
    "activations attention channels elf entries functions gemm loops native normals norms objects pairs products rates rows sliding steps "
    "tables windows",
)
