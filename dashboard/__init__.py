"""The pages; they talk to the API alone, so they can be served from another machine.

| part | what it has |
| --- | --- |
| `app` | puts the pages onto a FastAPI app; `python -m dashboard` serves them alone |
| `router` | from an address to a page |
| `pages` | one module or package a page, with a `PAGE` |
| `components` | what several pages are made of |
| `figures` | functions from answers of the API to pictures |
| `api_client` | calls of the API as the person at the browser: who that is, what can be run |
| `cache` | what was made once is handed to all who look at the same version |
| `callbacks` | callbacks that can neither block the event loop nor fail in silence |
| `dash_routes` | Dash's own routes, guarded, and their scripts packed once |
| `theme`, `formats` | looks; numbers in words |
| `ids`, `ids_of_illustrations`, `markup` | names of components; Dash's building blocks |
| `assets` | styles, and scripts that run in the browser |

Nothing is imported here: who draws a figure in a terminal needs no Dash.
"""
