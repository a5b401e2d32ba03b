"""Work of a device that is recorded, and launched as one.

`control`     what the host decides at each launch, in the device's memory
`capture`     what is recorded now, in this thread: its memory, and where its draws begin
`executable`  a recorded graph
`zeros`       counters of libraries, all of which a graph sets to zero at once
"""
