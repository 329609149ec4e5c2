"""Dash's building blocks, as pages use them.

They are typed `Any` on purpose: Dash generates signatures that refuse `aria-*` and `data-*`
attributes, and Mantine's components have none at all, so a checker could only complain here.
"""

from typing import Any, TypeAlias

import dash

#: Anything Dash can draw.
Component: TypeAlias = Any

html: Any = dash.html
dcc: Any = dash.dcc
Dash: Any = dash.Dash
get_app: Any = dash.get_app
