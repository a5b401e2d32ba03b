"""Values and settings that everything stands on; the standard library, NumPy and ml_dtypes only.

`errors`   the exception tree and the form of a message     `device`   where an array lives
`dtypes`   element types and PyTorch's promotion rules      `pytree`   nested containers, flattened and rebuilt
`layouts`  memory formats                                   `threads`  how many compute; `blas`: in products of matrices
`locks`    of the whole process                             `memory`   what is free
`tracebacks` `text` what is printed                         `kept_errors` errors that hold no tensors
"""
