/* The table of studies, drawn from plain rows: texts are only ever written as text. */
(function () {
  "use strict";

  const HEAD = ["", "Study", "Methods", "Curve", "State", "Changed", ""];
  const selected = new Set();

  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    if (className) {
      element.className = className;
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  const tell = (id, data) => window.dash_clientside.set_props(id, { data });

  /* --- Cells ------------------------------------------------------------------------------ */

  function choice(study) {
    const box = make("input", "history-box");
    box.type = "checkbox";
    box.checked = selected.has(study.id);
    box.setAttribute("aria-label", "Select " + study.name + " for comparing");
    box.addEventListener("change", () => {
      selected[box.checked ? "add" : "delete"](study.id);
      tell("history-selected", [...selected]);
    });
    return box;
  }

  /* As any link of a page: without loading it anew, unless another tab was asked for. */
  function name(study) {
    const anchor = make("a", "history-name", study.name);
    anchor.href = "/studies/" + study.id + (study.query || "");
    anchor.addEventListener("click", (event) => {
      if (!(event.ctrlKey || event.metaKey || event.shiftKey || event.button)) {
        event.preventDefault();
        window.dash_clientside.set_props("location", { href: anchor.getAttribute("href") });
      }
    });
    return anchor;
  }

  const about = (study) =>
    make("div", "history-meta", study.about, ...study.tags.map((tag) => make("span", "tag", tag)));

  function methods(study) {
    const made = study.methods.map((method) => {
      const swatch = make("span", "swatch");
      swatch.style.backgroundColor = method.colour;
      swatch.setAttribute("aria-hidden", "true");
      return make("span", "method-name", swatch, method.name);
    });
    return make("div", "row", ...made);
  }

  function spark(study) {
    if (!study.spark) {
      return make("span", "history-meta", "no curve");
    }
    const image = make("img", "spark");
    image.src = study.spark.src;
    image.alt = study.spark.alt;
    return image;
  }

  function bar(study) {
    if (study.bar.length === 0) {
      return null;
    }
    const parts = study.bar.map((part) => {
      const made = make("span", "bar-part bar-" + part.state);
      made.style.width = part.percent + "%";
      return made;
    });
    return make("div", "bar", ...parts);
  }

  const state = (study) =>
    make("div", "", make("span", "state state-" + study.state.kind, study.state.name), bar(study),
      make("div", "history-meta", study.words));

  function changed(study) {
    const time = make("time", "local-time", study.changed);
    time.setAttribute("datetime", study.changed);
    return time;
  }

  function archive(study) {
    if (!study.archive) {
      return null;
    }
    const button = make("button", "quiet-button", study.archive);
    button.type = "button";
    button.setAttribute("aria-label", study.archive + " " + study.name);
    button.addEventListener("click", () => tell("history-pressed", { study: study.id, at: Date.now() }));
    return button;
  }

  /* --- Rows ------------------------------------------------------------------------------- */

  function row(study) {
    const cells = [
      make("td", "history-choice", choice(study)),
      make("td", "", name(study), about(study)),
      make("td", "", methods(study)),
      make("td", "history-curve", spark(study)),
      make("td", "history-state", state(study)),
      make("td", "history-meta history-changed", changed(study)),
      make("td", "history-archive", archive(study)),
    ];
    const made = make("tr", "", ...cells);
    made.dataset.study = study.id;
    return made;
  }

  function table() {
    const heads = HEAD.map((words) => {
      const head = make("th", "", words);
      head.scope = "col";
      return head;
    });
    return make("table", "table responsive history", make("thead", "", make("tr", "", ...heads)), make("tbody", ""));
  }

  /* What is followed while it runs; a row that is not shown is left out. */
  function refresh(place, study) {
    const found = place.querySelector('tr[data-study="' + study.id + '"]');
    if (found) {
      found.querySelector(".history-curve").replaceChildren(spark(study));
      found.querySelector(".history-state").replaceChildren(state(study));
    }
  }

  function replace(place, studies) {
    const made = table();
    made.querySelector("tbody").append(...studies.map(row));
    place.replaceChildren(...(studies.length ? [made] : []));
    const shown = new Set([...document.querySelectorAll("tr[data-study]")].map((one) => Number(one.dataset.study)));
    selected.forEach((id) => shown.has(id) || selected.delete(id));
    tell("history-selected", [...selected]);
  }

  function showStudies(given, where = "history-list") {
    const place = document.getElementById(where);
    if (place && given) {
      if (given.how === "replace") {
        replace(place, given.studies);
      } else if (given.how === "add") {
        place.querySelector("tbody").append(...given.studies.map(row));
      } else {
        given.studies.forEach((study) => refresh(place, study));
      }
    }
    return window.dash_clientside.no_update;
  }

  /* The studies below the row that stands for them; the row says whether it is open. */
  function showFolded(given) {
    const button = document.getElementById("history-fold-button");
    if (button && given) {
      button.setAttribute("aria-expanded", String(given.opened));
    }
    return showStudies(given, "history-folded");
  }

  const countSelected = (ids) => {
    const count = (ids || []).length;
    return [count < 2, count < 2 ? "Compare selected" : "Compare " + count + " studies"];
  };

  Object.assign(window.etascope, { showStudies, showFolded, countSelected });
})();
