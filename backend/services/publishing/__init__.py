"""Studies as files that need no server: one HTML page, or a zip of data, figures and commands.

| module | for |
| --- | --- |
| `contents` | what is published: curves, numbers, trials, how they were made; curves as SVG |
| `files` | the page and the zip |

The page draws itself with a script of its own, some 10 kB in `templates/`: a general plotting
library would be larger than all data, and this page has one kind of picture.
"""

from backend.services.publishing.contents import Contents, gather
from backend.services.publishing.files import MEDIA_TYPES, Format, html_page, zip_file

__all__ = ["MEDIA_TYPES", "Contents", "Format", "gather", "html_page", "zip_file"]
