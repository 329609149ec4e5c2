/* The browser's side of accounts: logging out, noticing that a login has ended, links to share. */
(function () {
  "use strict";

  const cookie = (name) =>
    (document.cookie.split("; ").find((part) => part.startsWith(name + "=")) || "").slice(name.length + 1);

  function toLogin() {
    const here = window.location.pathname + window.location.search;
    window.location.assign(here === "/" ? "/login" : "/login?next=" + encodeURIComponent(here));
  }

  async function logout(clicks) {
    if (clicks) {
      await fetch("/api/auth/logout", {
        method: "POST",
        headers: { "X-CSRF-Token": cookie("etascope_csrf") },
      });
      window.location.assign("/login");
    }
    return window.dash_clientside.no_update;
  }

  /* Every answer passes here, so that a login that has ended is noticed by whatever asks next. */
  const ask = window.fetch;
  window.fetch = async function (...question) {
    const answer = await ask.apply(this, question);
    if (answer.status === 401 && new URL(answer.url).origin === window.location.origin) {
      toLogin();
    }
    return answer;
  };

  /* Without https a browser has no clipboard to offer; selecting and copying still works. */
  function copyByHand(text) {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.appendChild(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }

  async function copyLink(clicks) {
    if (clicks) {
      const link = window.location.href;
      try {
        await navigator.clipboard.writeText(link);
      } catch (error) {
        copyByHand(link);
      }
      const said = { action: "show", id: "notice", message: "The link to this view is copied.", color: "indigo", autoClose: 4000, withBorder: true };
      window.dash_clientside.set_props("notices", { sendNotifications: [said] });
    }
    return window.dash_clientside.no_update;
  }

  Object.assign(window.etascope, { logout, copyLink });
})();
