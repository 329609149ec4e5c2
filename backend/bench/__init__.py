"""What the service takes: time and memory of a real web process, for `etascope bench`.

| module | what it is for |
| --- | --- |
| `installation` | a real installation, a real browser, and finished trials without training |
| `service` | submissions, reads and memory |
| `ui` | how long a person waits at the dashboard |
| `watchers` | what people who watch cost the worker |
| `crowd` | how long others wait meanwhile |
| `agents` | a thousand cells of programs that train elsewhere |
| `history` | what a million trials cost |
| `servers` | a throw-away PostgreSQL |
"""
