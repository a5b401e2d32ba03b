"""What a tensor can hold: one small protocol, and the arrays that obey it.

`protocol`  what every array offers: shape, dtype, device
`spec`      shape, dtype and device without data (``device="meta"``)
"""
