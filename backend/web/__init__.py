"""Between the network and the routes: limits, guards, one error shape.

| module | what it is for |
| --- | --- |
| `intake` | what may come in: how large, how slowly, how many at a time; the file in a request |
| `request_scope` | around every request: id, time, numbers for Prometheus; failures in one shape |
| `gate` | nobody gets past without a login or a token; without accounts, no other web site |
| `pages` | the login pages, their cookies, where to go afterwards; the API's documentation |
| `shared_answers` | one look at a sweep for all who listen; answers kept until they would change |
"""

from backend.web.gate import AccountGate, LocalGuard, document_tokens
from backend.web.intake import ImpatientProtocol, Intake, Upload, read_upload
from backend.web.pages import docs_page, drop_cookies, put_cookies
from backend.web.pages import router as entrance_router
from backend.web.request_scope import ApiFallback, Monitor, RequestScope, add_failure_handlers
from backend.web.shared_answers import AnswerCache, Watch, Watches, answer_by_version

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
