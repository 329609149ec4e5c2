"""What happens, by noun, inside the caller's transaction; knows no web framework.

Others import a noun's package or module from here and nothing inside a package: its `__init__`
says what they may use. Imports go down this table, never up.

| noun | owns |
| --- | --- |
| `start` | what a newcomer finds: a race, the first study, the bundle that comes along |
| `reproduction` | bundles of results put into the database, and the paper's claims judged on it |
| `publishing` | studies as files that need no server |
| `submission` | from a request's body to stored sweeps; runs that are logged as they happen |
| `catalog` | what can be run here |
| `importing` | runs made elsewhere |
| `maintenance` | contradictions between rows, old rows, room on the disks |
| `studies` | studies, what people note about them, and the history |
| `sweeps` | sweeps: submitted, followed, cancelled, retried |
| `timings` | what a step costs: races asked for, leased, announced |
| `errands` | what one worker does alone: leases of races; replays asked for, leased, stored |
| `shards` | what one worker trains together: planned, leased, announced |
| `analysis` | from trials to curves, robustness numbers and comparisons |
| `trials` | trials, their curves, and files of them |
| `offers` | tasks and methods that workers bring along, known by their manifests |
| `workers` | training processes: who has been heard of, and who still lives |
| `accounts` | people, their passwords, logins and tokens, and what each did |
| `illustrations` | numbers behind the guide's pictures |
| `paging` | lists page by page |
"""
