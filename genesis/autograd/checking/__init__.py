"""Is a gradient rule right, and what is wrong with it?

`gradcheck`   gradients against differences: yes, or an error
`verify`      everything that can be asked of a rule, as a table in words

`calls` `trial`        running a function under observation     `differences` `evidence`   numbers to compare with
`diagnose` `report`    what a difference means, in words         `conduct` `second`         what else must hold
`in_transforms`        forward mode, batches                     `surroundings`   warnings as errors, threads
`inputs`               arguments to call with
"""
