/* The strip stands on its picture's own axis: every span and mark where that axis has its rate. */
(function () {
  "use strict";

  /* A mark with no length would not be seen. */
  const LEAST = 5;

  function axisOf(strip) {
    const plot = document.querySelector("#" + strip.dataset.graph + " .js-plotly-plot");
    const axis = plot && plot._fullLayout && plot._fullLayout.xaxis;
    const drawn = axis && axis.type === "log" && plot.data && plot.data.length > 0;
    if (!drawn || (plot.layout.meta || {}).rates === false) {
      return null;
    }
    const left = plot.getBoundingClientRect().left + axis._offset;
    return { left, length: axis._length, low: axis.range[0], high: axis.range[1] };
  }

  const share = (axis, rate) => (Math.log10(rate) - axis.low) / (axis.high - axis.low);
  const end = (axis, text, open) => (text === "" ? open : Math.min(Math.max(share(axis, Number(text)), 0), 1));

  function placeSpan(axis, part) {
    const [from, to] = [end(axis, part.dataset.from, 0), end(axis, part.dataset.to, 1)];
    const width = Math.max((to - from) * axis.length, part.dataset.from && part.dataset.to ? LEAST : 0);
    const beyond = (from === 1 || to === 0) && part.dataset.from !== part.dataset.to;
    part.style.left = from * axis.length + "px";
    part.style.width = width + "px";
    part.hidden = beyond || width < 0.5;
  }

  function placeMark(axis, part) {
    const at = share(axis, Number(part.dataset.at));
    part.style.left = at * axis.length + "px";
    part.hidden = at < -1e-9 || at > 1 + 1e-9;
  }

  function place(strip) {
    const axis = axisOf(strip);
    strip.classList.toggle("no-axis", !axis);
    if (!axis) {
      return;
    }
    const inside = strip.querySelector(".lanes");
    const box = inside.getBoundingClientRect();
    if (!box.width) {
      return; // folded
    }
    const from = axis.left - box.left;
    const key = [from, axis.length, axis.low, axis.high, inside.childElementCount].join(" ");
    if (strip.dataset.placed === key) {
      return;
    }
    strip.dataset.placed = key;
    strip.style.setProperty("--axis-from", from + "px");
    strip.style.setProperty("--axis-length", axis.length + "px");
    strip.querySelectorAll("[data-from]").forEach((part) => placeSpan(axis, part));
    strip.querySelectorAll("[data-at]").forEach((part) => placeMark(axis, part));
  }

  let waiting = false;
  function placeAll() {
    if (!waiting) {
      waiting = true;
      window.requestAnimationFrame(() => {
        waiting = false;
        document.querySelectorAll(".strip[data-graph]").forEach(place);
      });
    }
  }

  // Whatever moves the axis changes its ticks, and a new strip is new elements.
  new MutationObserver(placeAll).observe(document.documentElement, { childList: true, subtree: true });
  window.addEventListener("resize", placeAll);
  document.addEventListener("toggle", placeAll, true);

  /* A button in plain markup sets a control: which, and to what, stands in its attributes. */
  document.addEventListener("click", (event) => {
    const button = event.target.closest && event.target.closest("[data-sets]");
    if (button) {
      window.dash_clientside.set_props(button.dataset.sets, { value: button.dataset.value });
    }
  });
})();
