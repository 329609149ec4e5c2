"""What the login page looks like: one file, nothing to load."""

import base64
import hashlib
from string import Template

#: Moves the key from behind the `#` into the form, and out of the address.
SCRIPT = (
    "if(location.hash){document.getElementById('key').value=location.hash.slice(1);"
    "history.replaceState(null,'','/welcome')}"
)
_SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_SCRIPT_HASH}'; "
    "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

STYLE = """
:root { color-scheme: light dark; --page: #f8f9fa; --surface: #fff; --line: #dee2e6; --ink: #1a1d21;
  --muted: #545b64; --accent: #3b5bdb; --accent-ink: #fff; --bad: #c92a2a; --focus: #1c7ed6; }
@media (prefers-color-scheme: dark) { :root { --page: #101214; --surface: #17191c; --line: #34393f;
  --ink: #e6e8eb; --muted: #a6adb5; --bad: #ff8787; --focus: #74c0fc; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 16px;
  background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 380px; padding: 24px; background: var(--surface);
  border: 1px solid var(--line); border-radius: 8px; }
.brand { display: flex; align-items: center; gap: 8px; font-weight: 700; font-size: 1.1rem; }
.mark { display: grid; place-items: center; width: 30px; height: 30px; border-radius: 6px;
  background: var(--accent); color: var(--accent-ink); font: italic 700 18px Georgia, serif; }
h1 { font-size: 1.4rem; margin: 16px 0 4px; }
p { margin: 0 0 16px; color: var(--muted); }
label { display: block; margin-bottom: 16px; font-weight: 600; font-size: .92rem; }
input { display: block; width: 100%; min-height: 44px; margin-top: 4px; padding: 8px 12px;
  font: inherit; font-weight: 400; color: var(--ink); background: var(--page);
  border: 1px solid var(--muted); border-radius: 6px; }
button { width: 100%; min-height: 44px; border: 0; border-radius: 6px; font: inherit;
  font-weight: 600; color: var(--accent-ink); background: var(--accent); cursor: pointer; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
[role="alert"] { padding: 8px 12px; border-left: 4px solid var(--bad); color: var(--ink);
  background: var(--page); }
"""

PAGE = Template(
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
    f"<title>Log in · Etascope</title><style>{STYLE}</style></head><body><main>"
    '<div class="brand"><span class="mark" aria-hidden="true">η</span>Etascope</div>'
    "$form</main></body></html>"
)

LOGIN = Template(
    "<h1>Log in</h1><p>Learning-rate studies of your team.</p>$alert"
    '<form method="post" action="/login"><input type="hidden" name="next" value="$next">'
    '<label>Name<input name="username" value="$username" autocomplete="username" '
    'autocapitalize="none" spellcheck="false" required $first></label>'
    '<label>Password<input type="password" name="password" autocomplete="current-password" '
    "required $again></label><button>Log in</button></form>"
)

WELCOME = Template(
    "<h1>Welcome</h1><p>Choose the name and the password of the first admin.</p>$alert"
    '<form method="post" action="/welcome"><input type="hidden" name="key" id="key" value="$key">'
    '<label>Name<input name="username" value="$username" autocomplete="username" '
    'autocapitalize="none" spellcheck="false" required autofocus></label>'
    '<label>Password, at least 10 characters<input type="password" name="password" '
    'autocomplete="new-password" minlength="10" required></label>'
    f"<button>Create the account</button></form><script>{SCRIPT}</script>"
)
