"""What the service takes: time and memory of a real web process, for `etascope bench`."""
