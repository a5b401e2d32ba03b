"""PyTorch's own files, `.pt` and `.pth`: read without running anything in them, and written so that PyTorch reads them.

`files`     whole files: the zip archive                 `legacy`   the format before PyTorch 1.6
`archive`   zip archives, checked before they are used   `opcodes`  an interpreter of pickles that can call nothing
`names`     the names that a file may use                `tensors`  storages, and tensors on them
`pickler`   values as a pickle
"""
