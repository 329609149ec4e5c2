"""What runs Etascope on a machine: processes, programs and the database's upkeep.

| module | what it is for |
| --- | --- |
| `launcher` | `etascope up`: everything started, watched, welcomed and ended together |
| `broker` | the private Redis or Valkey server |
| `programs` | a child process that must not outlive us; programs that are not Python's, found |
| `database` | upgrades, backups, restoring |
| `web_process` | a web process kept small, and asked whether it is healthy |

Nothing is exported here: `programs` and `web_process` have to start at once, and
the others bring the database along.
"""
