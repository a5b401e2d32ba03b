"""Differentiable operations of users.

`function`   `Function` and its `apply`                    `context`    what forward tells backward: the node itself
`captures`   tensors that a function sees, not as arguments  `second_order`  second derivatives: right, or an error
`opaque`     one that is not made of ops, in a trace       `typed`      signatures of `apply` for type checkers
"""
