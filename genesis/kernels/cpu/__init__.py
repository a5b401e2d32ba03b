"""Kernels for NumPy arrays, where the meaning of an op is not what is fastest, or not exact enough.

`matmul`      large outer products; `gemm` products of float32 matrices, by native workers
`elementwise`, `pointwise`, `special`  functions of float32 arrays by way of float64, in blocks
`norm`        layer and RMS norm, fused
`activation`  SiLU, fused
`loss`        cross entropy, fused, and `classes` its machine code; `ctc` connectionist temporal classification
`attention`   attention, fused
`channel_norm`  batch and instance norm, fused; `group_norm` group norm
`convolution` convolutions, in blocks; `sliding` without copies of windows, where llvmlite is
`recurrent`   recurrent layers, fused; their machine code in `recurrent_code` and `recurrent_cells`
`grids`       images between their elements, fused; `folding` elements between channels and places
`pooling`     the largest and the sums of windows, fused, by `sums`; `running` sums and products along a dimension
`optim`       optimizer steps
`adding`      sums of rows at places; `distance` distances of all pairs of rows, fused
`draws`       normal numbers
`memory`      memory of large arrays, used again
`compiled`    elementwise functions as loops of machine code (`genesis.kernels.llvm`)
`rows`        softmax and normalisations, the same

Each attaches what it has to the ops (`genesis.core.call.kernels`) when it is imported.
"""

from genesis.kernels.cpu import activation as activation
from genesis.kernels.cpu import adding as adding
from genesis.kernels.cpu import attention as attention
from genesis.kernels.cpu import channel_norm as channel_norm
from genesis.kernels.cpu import compiled as compiled
from genesis.kernels.cpu import convolution as convolution
from genesis.kernels.cpu import ctc as ctc
from genesis.kernels.cpu import distance as distance
from genesis.kernels.cpu import draws as draws
from genesis.kernels.cpu import elementwise as elementwise
from genesis.kernels.cpu import folding as folding
from genesis.kernels.cpu import gemm as gemm
from genesis.kernels.cpu import grids as grids
from genesis.kernels.cpu import group_norm as group_norm
from genesis.kernels.cpu import loss as loss
from genesis.kernels.cpu import matmul as matmul
from genesis.kernels.cpu import norm as norm
from genesis.kernels.cpu import optim as optim
from genesis.kernels.cpu import pointwise as pointwise
from genesis.kernels.cpu import pooling as pooling
from genesis.kernels.cpu import recurrent as recurrent
from genesis.kernels.cpu import rows as rows
from genesis.kernels.cpu import running as running
from genesis.kernels.cpu import special as special
from genesis.kernels.cpu import tops as tops
