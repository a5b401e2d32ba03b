"""The memory of GPUs, used again.

`allocator`   blocks for work of streams, and how they come back; `blocks`: what they are cut from
`exhausted`   what is tried before there is said to be none left; `statistics`: how much is in use
`pinned`      memory of the host that copies need not wait for
"""
