"""Differentiable operations of users.

`function`   `Function`                                 `context`    what forward tells backward: the node itself
`calling`    `apply`, written for each class            `results`    what a call gives, with its history
`general`    `apply` where a call is not as usual
`captures`   tensors that a function sees, not as arguments  `second_order`  second derivatives: right, or an error
`opaque`     one that is not made of ops, in a trace       `typed`      signatures of `apply` for type checkers
"""
