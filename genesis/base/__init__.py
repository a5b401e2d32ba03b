"""Values and settings that everything stands on; the standard library, NumPy and ml_dtypes only.

`errors`   the exception tree and the form of a message     `device`   where an array lives
`dtypes`   element types and PyTorch's promotion rules      `pytree`   nested containers, flattened and rebuilt
`tracebacks` what is printed of an error
"""
