"""The paper's reproduction as people see it: over the wire, on a terminal, in one HTML file.

| module | what it is for |
| --- | --- |
| `wire` | findings as wire types, for the API, the Paper page and the report |
| `pictures` | the report's pictures in all their variants |
| `report` | the report itself |
| `terminal` | plan, progress and checks, printed |

What is exported here the web process needs; `report`, `pictures` and `terminal` are imported
by name, for they bring plotly and rich along.
"""

from backend.paper.wire import read_findings

__all__ = ["read_findings"]
