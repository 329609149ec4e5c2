"""The pages; they talk to the API alone, so they can be served from another machine.

| part | what it has |
| --- | --- |
| `app` | pages and Dash's own routes on a FastAPI app; `python -m dashboard` serves them alone |
| `router` | from an address to a page, and what surrounds it: header, navigation, crumbs |
| `pages` | one module or package a page, with a `PAGE` |
| `components` | what several pages are made of |
| `figures` | functions from answers of the API to pictures |
| `api_client` | calls of the API as the person at the browser; what they answer, kept |
| `dash_blocks` | components; callbacks that can neither block the event loop nor fail in silence |
| `theme` | looks; numbers in words |
| `ids` | names of components |
| `assets` | styles, and scripts that run in the browser |

Nothing is imported here: who draws a figure in a terminal needs no Dash.
"""
