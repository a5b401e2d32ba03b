"""Differentiable operations of users.

`function`   `Function` and its `apply`                    `context`    what forward tells backward: the node itself
`general`    `apply` where a call is not as usual       `results`    what a call gives, with its history
`captures`   tensors that a function sees, not as arguments  `second_order`  second derivatives: right, or an error
`opaque`     one that is not made of ops, in a trace       `typed`      signatures of `apply` for type checkers
"""
