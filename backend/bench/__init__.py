"""What the service takes: time and memory of a real web process, for `etascope bench`.

| module | what it is for |
| --- | --- |
| `installation` | a real installation, a real browser, and finished trials without training |
| `service` | submissions, reads and memory; what people who watch cost the worker |
| `ui` | how long a person waits at the dashboard |
| `crowd` | how long others wait: beside listeners, dawdlers, the worst bodies, and agents |
| `history` | what a million trials cost |
| `servers` | a throw-away PostgreSQL |
"""
