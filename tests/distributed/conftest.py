collect_ignore = ["jobs"]  # scripts that the tests run in several ranks
