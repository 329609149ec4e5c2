/* Components that came as data become plain elements. Texts stay texts, whatever they hold. */
(function () {
  "use strict";

  const RENAMED = { className: "class", tabIndex: "tabindex", colSpan: "colspan", rowSpan: "rowspan" };

  function element({ type, props: { children, style, ...attributes } }) {
    const made = document.createElement(type.toLowerCase());
    for (const [name, value] of Object.entries(attributes)) {
      made.setAttribute(RENAMED[name] || name, value);
    }
    Object.assign(made.style, style);
    made.append(...nodes(children));
    return made;
  }

  function nodes(markup) {
    if (markup === null || markup === undefined) {
      return [];
    }
    if (Array.isArray(markup)) {
      return markup.flatMap(nodes);
    }
    return [typeof markup === "object" ? element(markup) : String(markup)];
  }

  function fillPlain(place, markup) {
    const found = document.getElementById(place);
    if (found) {
      found.replaceChildren(...nodes(markup));
    }
  }

  Object.assign(window.etascope, { fillPlain });
})();
