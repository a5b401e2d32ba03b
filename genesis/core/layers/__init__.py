"""Ops on arrays with a layer: one for each open transform.

`duals`      forward mode: an op on arrays with tangents   `batches`         vmap: an op on arrays with a hidden dimension
`function_rules`  user functions inside transforms
"""
