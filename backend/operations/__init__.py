"""What runs Etascope on a machine: processes, programs and the database's upkeep.

| module | what it is for |
| --- | --- |
| `launcher` | `etascope up`: everything started, watched, welcomed and ended together |
| `child_process` | a process that must not outlive us |
| `broker` | the private Redis or Valkey server |
| `programs` | programs that are not Python's: where they are, what to install |
| `database` | upgrades, backups, restoring |
| `web_process` | a web process kept small, and asked whether it is healthy |

Nothing is exported here: `programs`, `child_process` and `web_process` have to start at once, and
the others bring the database along.
"""
