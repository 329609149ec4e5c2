/* Is anybody there, and have the studies that one saw running ended? */
(function () {
  "use strict";

  const PULSE = 6000;
  const KEY = "etascope-running";
  let away = false;
  let recoveries = 0;

  /* --- Studies one waits for, on whatever page one is ------------------------------------- */

  function awaited() {
    try {
      return JSON.parse(window.sessionStorage.getItem(KEY) || "[]");
    } catch (error) {
      return [];
    }
  }

  function remember(studies) {
    try {
      window.sessionStorage.setItem(KEY, JSON.stringify(studies.slice(-10)));
    } catch (error) {
      /* Without storage there is no news of other pages' studies. */
    }
  }

  /* A study that was awaited and is at rest has ended: the next beat says how. */
  function awaitStudy(study, paused) {
    const known = awaited().includes(study);
    if (paused && known) {
      beat();
    } else if (!paused && !known) {
      remember([...awaited(), study]);
    }
    return window.dash_clientside.no_update;
  }

  function announce(study) {
    if (!study.name) {
      return;
    }
    const message = "“" + study.name + "” has ended: " + study.state + ".";
    const said = { action: "show", id: "ended-" + study.id, message, color: "indigo", autoClose: false, withBorder: true };
    window.dash_clientside.set_props("notices", { sendNotifications: [said] });
    if (document.hidden && permission() === "granted") {
      const shown = new window.Notification("Etascope", { body: message, tag: "study-" + study.id });
      shown.onclick = () => window.focus();
    }
  }

  /* --- Permission to speak while the page is hidden --------------------------------------- */

  const permission = () => ("Notification" in window ? window.Notification.permission : "denied");

  function tellPermission() {
    document.documentElement.dataset.news = permission();
  }

  document.addEventListener("click", async (event) => {
    if (event.target.closest && event.target.closest(".ask-for-news")) {
      await window.Notification.requestPermission();
      tellPermission();
    }
  });

  /* --- The pulse -------------------------------------------------------------------------- */

  async function news() {
    const studies = awaited();
    try {
      const answer = await fetch("/dashboard/pulse" + (studies.length ? "?studies=" + studies.join(",") : ""), { cache: "no-store" });
      return answer.ok ? (await answer.json()).ended : null;
    } catch (error) {
      return null;
    }
  }

  async function beat() {
    if (document.hidden && awaited().length === 0) {
      return;
    }
    const ended = await news();
    const answered = ended !== null;
    const banner = document.getElementById("away");
    if (banner && answered === away) {
      banner.hidden = answered;
      banner.textContent = answered ? "" : "The server does not answer. Trying again every few seconds…";
    }
    if (answered && away) {
      recoveries += 1;
      window.dash_clientside.set_props("recoveries", { data: recoveries });
    }
    away = !answered;
    (ended || []).forEach(announce);
    const over = new Set((ended || []).map((study) => study.id));
    remember(awaited().filter((id) => !over.has(id)));
  }

  tellPermission();
  window.setInterval(beat, PULSE);
  document.addEventListener("visibilitychange", beat);

  Object.assign(window.etascope, { awaitStudy });
})();
