"""What computes ops on GPUs.

`choose`   what computes an op: a view, a kernel, or the host
`lowering` from a call of an op to launches, by the rules of the compiler
`products` of matrices, `einsum` as such; `draws`: random numbers, whose code is in `draws_code`; `fused`: composites that are one kernel
`lanes`    kernels written by hand, of a lane for each element: `gathers` (elements that indices name), `moves` (copies in
           another order), `sums` (elements written and added where indices say; whole rows: `segments`), `sorts`
           (`networks` put integers in order, `firsts` are a few of many), `searches`, `counts`, `complexes`, `uniques`, `divisions`
`norms`    of rows, by the rules of the compiler, `channels`: batch norm; `losses`: cross entropy, whose code is in `losses_code`, `loss_gradients`: with its gradient, `heads`: of linear logits; `activations`: GELU; `columns`: sums of columns
`attention` by tiles, forward and backward; its code is in `attention_code`
`convolution` as products that are never in memory; `scans`: running reductions
`pooling`  and interpolation, whose kernels are `pooling_tiles`, with their code in `pooling_code`; `folding`: windows as columns
`wanted`   whether kernels are wanted at all
`views`    the same memory, seen in another way
`host`     the way over the CPU, for ops without a kernel
"""
