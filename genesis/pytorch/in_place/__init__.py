"""A folder for the path of modules in which ``torch`` is Genesis: for programs that a program run with ``--torch`` starts."""
