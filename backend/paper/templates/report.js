"use strict";
document.documentElement.dataset.scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
(async () => {
  const root = document.documentElement;
  const packed = Uint8Array.from(atob(document.getElementById("figures").textContent), (c) => c.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const figures = JSON.parse(await new Response(unpacked).text());
  const templates = JSON.parse(document.getElementById("templates").textContent);
  const narrow = matchMedia("(max-width: 700px)");
  const config = { displaylogo: false, responsive: true, showSendToCloud: false, plotlyServerURL: "",
    modeBarButtonsToRemove: ["sendChartToCloud", "select2d", "lasso2d", "autoScale2d"] };

  function draw(holder) {
    const width = narrow.matches ? "narrow" : "wide";
    const { data, layout } = figures[holder.dataset.figure][root.dataset.scheme][width];
    const own = structuredClone({ data, layout });
    own.layout.template = structuredClone(templates[root.dataset.scheme]);
    own.layout.height ??= narrow.matches ? 560 : 480;
    holder.drawn = true;
    Plotly.react(holder, own.data, own.layout, config);
  }

  function setScheme(name) {
    root.dataset.scheme = name;
    document.querySelectorAll(".figure").forEach((holder) => holder.drawn && draw(holder));
  }

  // Pictures are drawn when they come near the window: the report opens at once.
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { watcher.unobserve(entry.target); draw(entry.target); }
    }
  }, { rootMargin: "600px" });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  setScheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => setScheme(dark.matches ? "dark" : "light"));
  narrow.addEventListener("change", () => setScheme(root.dataset.scheme));
  document.getElementById("scheme").addEventListener("click",
    () => setScheme(root.dataset.scheme === "dark" ? "light" : "dark"));
  addEventListener("beforeprint", () => document.querySelectorAll(".figure").forEach((h) => h.drawn || draw(h)));
  addEventListener("beforeprint", () => document.querySelectorAll(".folded, .each").forEach((one) => { one.open = true; }));
  document.querySelectorAll(".figure").forEach((holder) => watcher.observe(holder));

  // A link to an experiment opens it; so does an address that ends in one.
  function unfold(hash) {
    const folded = hash && document.getElementById(hash.slice(1))?.querySelector("details.each");
    if (folded) { folded.open = true; }
  }
  addEventListener("click", (event) => unfold(event.target.closest?.('a[href^="#"]')?.hash));
  unfold(location.hash);
})();
