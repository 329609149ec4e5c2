/* The form of a sweep: when to ask what it would mean, when it may be run, and its address. */
(function () {
  "use strict";

  /* Nobody is asked while somebody types. */
  const PAUSE = 350;

  /* Of the form that is open: its key, its values at first, the address it was opened with, and
     what was last asked about. */
  const form = { key: null, first: [], search: "", asked: null, timer: null };

  const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

  const asText = (value) =>
    Array.isArray(value) ? value.join(",") : value === true ? "1" : !value ? "" : String(value);

  /* What differs from the form as it was opened goes into the address of this very entry of the
     browser's history, so that "back" and a reload find it. */
  function keepAddress(names, values) {
    const query = new URLSearchParams(form.search);
    names.forEach((name, index) => {
      if (!same(asText(values[index]), asText(form.first[index]))) {
        query.set(name, asText(values[index]));
      }
    });
    const text = query.toString().replace(/%2C/g, ",");
    const wanted = window.location.pathname + (text ? "?" + text : "");
    if (wanted !== window.location.pathname + window.location.search) {
      window.history.replaceState(window.history.state, "", wanted);
      window.dispatchEvent(new CustomEvent("_dashprivate_pushstate")); // so that Dash knows it too
    }
  }

  /* Returns whether the form must not be run: it may once the answer to just this form says so.

     `given` is the form's key, that answer, the study's name, and the fields. */
  function formChanged(names, asked, forecast, [key, answer, name, ...values]) {
    if (key !== form.key) {
      Object.assign(form, { key, first: [name, ...values], search: window.location.search, asked: null });
    }
    keepAddress(["name", ...names], [name, ...values]);
    const current = Boolean(answer) && same(answer.form, values);
    document.getElementById(forecast).classList.toggle("stale", !current);
    if (!current && !same(form.asked, values)) {
      const pause = form.asked === null ? 0 : PAUSE;
      form.asked = values;
      window.clearTimeout(form.timer);
      form.timer = window.setTimeout(() => {
        if (document.getElementById(forecast)) {
          window.dash_clientside.set_props(asked, { data: values });
        }
      }, pause);
    }
    return !(current && answer.ready);
  }

  /* Returns what the fields of a task's own options hold, as JSON by name; empty ones are left
     out, so that a task without options gives what a form without them has. */
  function gatherOptions([texts, choices, numberIds, choiceIds]) {
    const held = {};
    numberIds.forEach((id, index) => { held[id.key] = texts[index]; });
    choiceIds.forEach((id, index) => { held[id.key] = (choices[index] || []).join(","); });
    const filled = Object.entries(held).filter(([, text]) => text);
    return filled.length ? JSON.stringify(Object.fromEntries(filled)) : "";
  }

  /* Returns what an answer says of those fields: errors, texts they are about, what was understood;
     then errors of choices. */
  function tellOptions(answer, numberIds, choiceIds) {
    const own = (answer && answer.own) || {};
    const said = (ids, what) => ids.map((id) => (own[id.key] || {})[what] || null);
    return [
      said(numberIds, "error"), said(numberIds, "answers"), said(numberIds, "understood"),
      said(choiceIds, "error"),
    ];
  }

  Object.assign(window.etascope, { formChanged, gatherOptions, tellOptions });
})();
