"""Between the network and the routes: limits, guards, one error shape.

| module | what it is for |
| --- | --- |
| `intake` | what may come in: how large, how slowly, how many at a time; the file in a request |
| `request_scope` | around every request: its id, its time, numbers for Prometheus, the last net |
| `gate` | nobody gets past without a login or a token; without accounts, no other web site |
| `entrance` | the login pages, their cookies, and where to go afterwards |
| `failures` | every failure in one shape, also of paths that do not exist |
| `answer_cache` | answers that cost time, kept until what they tell has changed |
| `sweep_watch` | one look at a sweep for all who listen to it |
| `documentation` | the API's own page |
"""

from backend.web.answer_cache import AnswerCache, answer_by_version
from backend.web.documentation import docs_page
from backend.web.entrance import drop_cookies, put_cookies
from backend.web.entrance import router as entrance_router
from backend.web.failures import ApiFallback, add_failure_handlers
from backend.web.gate import AccountGate, LocalGuard, document_tokens
from backend.web.intake import ImpatientProtocol, Intake, Upload, read_upload
from backend.web.request_scope import Monitor, RequestScope
from backend.web.sweep_watch import Watch, Watches

__all__ = [
    "AccountGate",
    "AnswerCache",
    "ApiFallback",
    "ImpatientProtocol",
    "Intake",
    "LocalGuard",
    "Monitor",
    "RequestScope",
    "Upload",
    "Watch",
    "Watches",
    "add_failure_handlers",
    "answer_by_version",
    "docs_page",
    "document_tokens",
    "drop_cookies",
    "entrance_router",
    "put_cookies",
    "read_upload",
]
