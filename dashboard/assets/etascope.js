/* The browser's side of the dashboard: addresses, the menu, local times, light and dark. */
(function () {
  "use strict";

  const keep = () => window.dash_clientside.no_update;
  const isNarrow = () => window.innerWidth < 640;

  /* --- The view lives in the address ------------------------------------------------------ */

  const readers = {
    text: (text) => text,
    number: (text) => (text === "" || Number.isNaN(Number(text)) ? null : Number(text)),
    flag: (text) => text === "1",
    list: (text) => (text === "" ? [] : text.split(",")),
  };

  const writers = {
    text: (value) => (value === null || value === undefined ? "" : String(value)),
    number: (value) => (value === null || value === undefined ? "" : String(value)),
    flag: (value) => (value ? "1" : "0"),
    list: (value) => (value || []).join(","),
  };

  /* A study made from a preset has a picture of its own for an address that names none. */
  function fallbackOf(control) {
    const said = control.said_by && document.getElementById(control.said_by);
    return (said && said.dataset.fallback) || control.fallback;
  }

  function writeSearch(controls, values) {
    const query = new URLSearchParams(window.location.search);
    controls.forEach((control, index) => {
      const write = writers[control.kind];
      const text = write(values[index]);
      if (text === write(fallbackOf(control))) {
        query.delete(control.name);
      } else {
        query.set(control.name, text);
      }
    });
    const text = query.toString().replace(/%2C/g, ",");
    return text ? "?" + text : "";
  }

  /* A number field shows what it cannot hold as it stands in the address, and says why. */
  function unreadable(control, text) {
    const field = control.kind === "number" ? window.dash_component_api.getLayout(control.id) : null;
    const kind = field && field.props.kind;
    return Boolean(kind && window.etascope.readNumber(text, kind).wrong);
  }

  function readControls(controls, search, values) {
    const query = new URLSearchParams(search);
    controls.forEach((control, index) => {
      if (query.has(control.name) && unreadable(control, query.get(control.name))) {
        window.dash_clientside.set_props(control.id, { text: query.get(control.name) });
        return;
      }
      const wanted = query.has(control.name)
        ? readers[control.kind](query.get(control.name))
        : fallbackOf(control);
      if (JSON.stringify(wanted) !== JSON.stringify(values[index])) {
        window.dash_clientside.set_props(control.id, { [control.property]: wanted });
      }
    });
  }

  /* An address without what is no step for "back": every drawer that was opened would be one. */
  function without(controls, search) {
    const query = new URLSearchParams(search);
    controls.filter((control) => control.quiet).forEach((control) => query.delete(control.name));
    return query.toString();
  }

  /* Only what has settled is written: a dragged slider must not fill the browser's history. */
  const SETTLE = 250;
  let settling = null;
  let held = false;
  ["pointerdown", "pointerup", "pointercancel"].forEach((name) =>
    document.addEventListener(name, () => { held = name === "pointerdown"; }, true)
  );

  function whenSettled(write) {
    window.clearTimeout(settling);
    settling = window.setTimeout(() => (held ? whenSettled(write) : write()), SETTLE);
  }

  /* An address we wrote ourselves is no news: by the time it comes back a control may be further. */
  let written = null;

  /* One callback for both directions: the address sets the controls, controls set the address. */
  function syncUrl(path, controls, search, values) {
    const triggered = (window.dash_clientside.callback_context.triggered || []).map((t) => t.prop_id);
    const here = () => new RegExp(path).test(window.location.pathname);
    if (triggered.length === 0 || !here()) {
      return;
    }
    if (triggered.includes("location.search")) {
      const echo = window.location.search === written;
      written = null;
      if (!echo) {
        readControls(controls, window.location.search, values);
      }
      if (!echo || triggered.length === 1) {
        return;
      }
    }
    whenSettled(() => {
      const wanted = writeSearch(controls, values);
      if (!here() || wanted === window.location.search) {
        return;
      }
      written = wanted;
      if (without(controls, wanted) === without(controls, window.location.search)) {
        window.history.replaceState(window.history.state, "", window.location.pathname + wanted + window.location.hash);
        window.dispatchEvent(new CustomEvent("_dashprivate_pushstate")); // so that Dash knows it too
      } else {
        window.dash_clientside.set_props("location", { search: wanted });
      }
    });
  }

  // Opens the confirmation for the button of a sweep that was pressed: [open, words, what to do].
  function askFirst(questions) {
    const nothing = window.dash_clientside.no_update;
    const pressed = window.dash_clientside.callback_context.triggered[0];
    if (!pressed || !pressed.value) {
      return [nothing, nothing, nothing];
    }
    const id = JSON.parse(pressed.prop_id.slice(0, pressed.prop_id.lastIndexOf(".")));
    const action = id.kind.replace("sweep-", "");
    const words = questions[action].replace("{id}", id.key);
    return [true, words, { do: action, sweep: id.key }];
  }

  /* --- Menus ------------------------------------------------------------------------------ */

  const menuIsOpen = () => document.body.classList.contains("menu-open");

  function openMenu(open) {
    const button = document.getElementById("menu-button");
    document.body.classList.toggle("menu-open", open);
    if (button) {
      button.setAttribute("aria-expanded", open ? "true" : "false");
    }
    return button;
  }

  /* The main menu on a phone. */
  function toggleMenu() {
    const pressed = (window.dash_clientside.callback_context.triggered || []).some((t) =>
      t.prop_id.startsWith("menu-button")
    );
    openMenu(pressed && !menuIsOpen());
    return keep();
  }

  /* Escape closes whatever menu is open, wherever the focus is: Mantine closes its own only from
     inside. The focus goes back to what opened it. */
  function closeMenus(event) {
    const opened = document.querySelector('[aria-haspopup="menu"][aria-expanded="true"]');
    if (event.key !== "Escape" || !(opened || menuIsOpen())) {
      return;
    }
    event.stopPropagation();
    if (opened) {
      opened.click();
    }
    (opened || openMenu(false)).focus();
  }
  document.addEventListener("keydown", closeMenus, true);

  /* A new page begins at its top, for eyes and for screen readers. */
  let arrivals = 0;

  function arrive(title) {
    if (title) {
      document.title = title;
    }
    arrivals += 1;
    const page = document.getElementById("page");
    if (arrivals > 1 && page && !window.location.hash) {
      window.scrollTo(0, 0);
      page.focus({ preventScroll: true });
    }
    return keep();
  }

  /* --- Times in the viewer's zone --------------------------------------------------------- */

  const formats = { dateStyle: "medium", timeStyle: "short" };

  function localise(root) {
    root.querySelectorAll("time.local-time").forEach((element) => {
      const iso = element.getAttribute("datetime");
      if (!iso || element.dataset.shown === iso || !element.firstChild) {
        return;
      }
      const moment = new Date(iso);
      if (Number.isNaN(moment.getTime())) {
        return;
      }
      element.firstChild.nodeValue = new Intl.DateTimeFormat(undefined, formats).format(moment);
      element.title = moment.toString();
      element.dataset.shown = iso;
    });
  }

  /* --- Light and dark --------------------------------------------------------------------- */

  const KEY = "mantine-color-scheme-value";
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  function remembered() {
    try {
      return window.localStorage.getItem(KEY);
    } catch (error) {
      return null;
    }
  }

  function currentScheme() {
    const chosen = remembered();
    return chosen === "dark" || chosen === "light" ? chosen : system.matches ? "dark" : "light";
  }

  /* Components, figures (drawn by the server) and grids (another library) all have to be told. */
  function applyScheme(scheme) {
    document.documentElement.dataset.agThemeMode = scheme;
    window.dash_clientside.set_props("provider", { forceColorScheme: scheme });
  }

  /* The system's scheme until a person presses the button; from then on what they chose. */
  function chooseScheme(clicks) {
    let scheme = currentScheme();
    if (clicks) {
      scheme = scheme === "dark" ? "light" : "dark";
      try {
        window.localStorage.setItem(KEY, scheme);
      } catch (error) {
        /* Without storage the choice lasts as long as the page. */
      }
    }
    applyScheme(scheme);
    return [scheme, isNarrow()];
  }

  system.addEventListener("change", () => {
    const scheme = currentScheme();
    applyScheme(scheme);
    window.dash_clientside.set_props("scheme", { data: scheme });
  });

  window.matchMedia("(max-width: 639px)").addEventListener("change", () => {
    window.dash_clientside.set_props("narrow", { data: isNarrow() });
  });

  new MutationObserver(() => localise(document)).observe(document.documentElement, {
    childList: true,
    subtree: true,
    attributes: true,
    attributeFilter: ["datetime"],
  });

  /* --- Small questions pages ask ---------------------------------------------------------- */

  /* So many ticks an answer is waited for; one that got lost must not stop the page for good. */
  const PATIENCE = 15;

  function nextTick(count, busy, asked) {
    const waits = busy && count - (asked || 0) < PATIENCE;
    return document.hidden || waits ? keep() : count;
  }

  window.etascope = {
    syncUrl,
    askFirst,
    toggleMenu,
    arrive,
    nextTick,
    chooseScheme,
  };
})();
