"""The service.

| module | what it is for |
| --- | --- |
| `app` | the web app: routers and what surrounds them |
| `settings` | every `ETASCOPE_*` variable; logs of every process, without secrets |
| `db` | the engine, transactions, the database's own time |
| `errors` | what the service refuses, and with which status |
| `deps` | what routes are given: a session, the queue, who is asking; ids and pages; their errors |
| `queue` | the only sender of messages to the workers; what is due or lost is announced again |

Packages: `cli` and `operations` run it, `routes` and `web` speak HTTP, `services` do what is
asked, `models` keep it, `schemas` and `client` are for whoever asks; `paper` and `bench` report.
"""
