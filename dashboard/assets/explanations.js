/* Explanations on hover, keyboard focus and touch: one bubble for the whole page. */
(function () {
  "use strict";

  const GAP = 8;
  let shown = null;
  let shownAt = null;

  function bubble() {
    let found = document.getElementById("explanation");
    if (!found) {
      found = document.createElement("div");
      found.id = "explanation";
      found.setAttribute("role", "tooltip");
      found.hidden = true;
      document.body.appendChild(found);
    }
    return found;
  }

  function show(term) {
    const box = bubble();
    shown = term;
    box.textContent = term.dataset.explanation;
    box.hidden = false;
    term.setAttribute("aria-describedby", "explanation");
    const around = term.getBoundingClientRect();
    shownAt = { left: around.left, top: around.top };
    const own = box.getBoundingClientRect();
    const left = Math.min(Math.max(around.left + around.width / 2 - own.width / 2, GAP), window.innerWidth - own.width - GAP);
    const fits = around.top - own.height - GAP > 0;
    box.style.left = left + "px";
    box.style.top = (fits ? around.top - own.height - GAP : around.bottom + GAP) + "px";
  }

  function hide() {
    if (shown) {
      shown.removeAttribute("aria-describedby");
      shown = null;
      bubble().hidden = true;
    }
  }

  /* A scroll is told of a frame later: it may have ended before the term was pointed at. */
  function follow() {
    const place = shown && shown.getBoundingClientRect();
    if (place && (place.left !== shownAt.left || place.top !== shownAt.top)) {
      hide();
    }
  }

  const termOf = (event) => (event.target.closest ? event.target.closest("[data-explanation]") : null);

  ["mouseover", "focusin"].forEach((name) =>
    document.addEventListener(name, (event) => {
      const term = termOf(event);
      if (term !== shown && (term || (shown && !shown.isConnected))) {
        hide(); // also of a term that was drawn anew, which nobody leaves
      }
      if (term && term !== shown) {
        show(term);
      }
    })
  );
  ["mouseout", "focusout"].forEach((name) =>
    document.addEventListener(name, (event) => {
      if (termOf(event) === shown) {
        hide();
      }
    })
  );
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      hide();
    }
  });
  document.addEventListener("scroll", follow, true);
})();
