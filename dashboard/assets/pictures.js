/* Pictures to keep, exactly as they are shown: zoom, hidden curves and colours included. */
(function () {
  "use strict";

  const POINTS_PER_PIXEL = 0.75;
  /* The makers of PDFs are large: they come with the first PDF somebody wants. */
  const MAKERS = new URL("pdf/", document.currentScript.src);
  const FONT = "LiberationSans";
  const WEIGHTS = { normal: "Regular", bold: "Bold" };

  function download(url, filename) {
    const anchor = document.createElement("a");
    anchor.href = url;
    anchor.download = filename;
    document.body.appendChild(anchor);
    anchor.click();
    anchor.remove();
  }

  function say(message) {
    const said = { action: "show", id: "trouble", message, color: "red", autoClose: 8000 };
    window.dash_clientside.set_props("notices", { sendNotifications: [said] });
  }

  const svgOf = (url) => decodeURIComponent(url.slice(url.indexOf(",") + 1));

  /* --- A PDF whose lines are lines and whose letters are letters -------------------------- */

  function script(name) {
    return new Promise((resolve, reject) => {
      const added = document.createElement("script");
      added.src = new URL(name, MAKERS);
      added.onload = resolve;
      added.onerror = () => reject(new Error("The server did not send " + name + "."));
      document.head.appendChild(added);
    });
  }

  function encoded(bytes) {
    let text = "";
    for (let start = 0; start < bytes.length; start += 8192) {
      text += String.fromCharCode(...bytes.subarray(start, start + 8192));
    }
    return window.btoa(text);
  }

  /* The page gets the font, too: ends and middles of texts are measured with it. */
  async function font(weight) {
    const file = FONT + "-" + WEIGHTS[weight] + ".ttf";
    const answer = await window.fetch(new URL(file, MAKERS));
    if (!answer.ok) {
      throw new Error("The server did not send " + file + ".");
    }
    const bytes = await answer.arrayBuffer();
    document.fonts.add(await new FontFace(FONT, bytes, { weight }).load());
    return { file, weight, text: encoded(new Uint8Array(bytes)) };
  }

  /* The font has no raised digits: small ones are raised instead, so that 10⁴ stays 10⁴. */
  const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻";
  const PLAIN = "0123456789−";
  const RAISED_RUN = new RegExp("([" + RAISED + "]+)");

  function piece(text, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "tspan");
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    made.textContent = text;
    return made;
  }

  function raise(node) {
    const parts = node.data.split(RAISED_RUN);
    if (parts.length === 1) {
      return;
    }
    const sized = node.parentElement.closest("[style*=font-size]");
    const size = sized ? parseFloat(sized.style.fontSize) : 12;
    const made = parts.map((part, index) =>
      index % 2
        ? piece(Array.from(part, (digit) => PLAIN[RAISED.indexOf(digit)]).join(""), {
            dy: -0.38 * size, style: "font-size: " + 0.7 * size + "px",
          })
        : piece(part, { dy: index ? 0.38 * size : 0 })
    );
    node.replaceWith(...made.filter((one) => one.textContent));
  }

  function textNodes(svg) {
    const walker = document.createTreeWalker(svg, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) {
      found.push(walker.currentNode);
    }
    return found;
  }

  /* Whoever names a study in letters that the font lacks is told how to keep them. */
  function lacking(svg, pdf) {
    const known = pdf.internal.getFont(FONT, "normal").metadata.cmap.unicode.codeMap;
    const used = new Set(Array.from(svg.textContent.replace(/\s/g, "")));
    return [...used].filter((letter) => !(letter.codePointAt(0) in known)).join("");
  }

  let makers = null;

  function loadMakers() {
    const scripts = () => script("jspdf.umd.min.js").then(() => script("svg2pdf.umd.min.js"));
    makers = makers || Promise.all([font("normal"), font("bold"), scripts()]);
    makers.catch(() => { makers = null; });
    return makers;
  }

  async function downloadPdf(url, width, height, filename) {
    const [normal, bold] = await loadMakers();
    const size = [width * POINTS_PER_PIXEL, height * POINTS_PER_PIXEL];
    const orientation = width > height ? "landscape" : "portrait";
    const pdf = new window.jspdf.jsPDF({ unit: "pt", format: size, orientation, compress: true });
    pdf.setProperties({ title: filename, creator: "Etascope" });
    [normal, bold].forEach(({ file, weight, text }) => {
      pdf.addFileToVFS(file, text);
      pdf.addFont(file, FONT, weight);
    });
    const svg = new DOMParser().parseFromString(svgOf(url), "image/svg+xml").documentElement;
    textNodes(svg).forEach(raise);
    svg.querySelectorAll("text, tspan").forEach((part) => { part.style.fontFamily = FONT; });
    const missing = lacking(svg, pdf);
    if (missing) {
      say("The PDF's font lacks " + missing + ". “Print…” in the same menu has your system's letters.");
    }
    await pdf.svg(svg, { x: 0, y: 0, width: size[0], height: size[1] });
    pdf.save(filename + ".pdf");
  }

  /* --- The browser's own printing: with whatever letters the system has ------------------- */

  function printPicture(url, width, height, filename) {
    const frame = document.createElement("iframe");
    frame.className = "print-frame";
    frame.setAttribute("aria-hidden", "true");
    document.body.appendChild(frame);
    const page = frame.contentDocument;
    page.open();
    page.write(
      "<!DOCTYPE html><title>" + filename + "</title><style>@page{size:" + width + "px " + height +
        "px;margin:0}body{margin:0}svg{display:block}</style>" + svgOf(url)
    );
    page.close();
    frame.contentWindow.addEventListener("afterprint", () => frame.remove());
    frame.contentWindow.focus();
    frame.contentWindow.print();
  }

  /* What plotly is asked for, and what becomes of it. */
  const KINDS = {
    pdf: { format: "svg", scale: 1, keep: downloadPdf },
    svg: { format: "svg", scale: 1, keep: (url, w, h, name) => download(url, name + ".svg") },
    png: { format: "png", scale: 3, keep: (url, w, h, name) => download(url, name + ".png") },
    print: { format: "svg", scale: 1, keep: printPicture },
  };

  /* --- Plotly draws the cells of a map as pixels; bars of the same colours stay sharp --------- */

  function barsOf({ x, y, z, colorscale, coloraxis, xaxis, yaxis }) {
    const all = z.flatMap((row, up) => row.map((value, across) => ({ value, up, across })));
    const cells = all.filter(({ value }) => value !== null);
    const values = cells.map(({ value }) => value);
    const paint = coloraxis ? { color: values, coloraxis } : { color: colorscale[0][1] };
    return {
      type: "bar", xaxis, yaxis, showlegend: false,
      // Between rates, also where their axis is logarithmic: ends are what plotly takes logarithms of.
      x: cells.map(({ across }) => (x[across] + x[across + 1]) / 2),
      width: cells.map(({ across }) => x[across + 1] - x[across]),
      base: cells.map(({ up }) => y[up]),
      y: cells.map(({ up }) => y[up + 1] - y[up]),
      // Without a line neighbours would let the paper shine through between them.
      marker: { ...paint, line: { ...paint, width: 0.5 } },
    };
  }

  const hasCells = (data) => data.some((trace) => trace.type === "heatmap");

  function inVectors({ data, layout }) {
    const drawn = data.map((trace) => (trace.type === "heatmap" ? barsOf(trace) : trace));
    return { data: drawn, layout: { ...layout, barmode: "overlay" } };
  }

  /* --- For a paper: centimetres and points, whatever the window's size ---------------------- */

  const CM_PER_INCH = 2.54;
  const POINTS_PER_INCH = 72;
  /* The size of the letters in every picture of ours. */
  const FONT_SIZE = 13;
  const LEGEND_ROW = 24;

  /* Drawn in pixels of which so many make a point that our letters have the size asked for. */
  function paperSize(plot, wanted) {
    const points = (wanted.width / CM_PER_INCH) * POINTS_PER_INCH;
    const scale = FONT_SIZE / wanted.font;
    return { width: Math.round(points * scale), points, scale };
  }

  function legendOf(layout, place, names, width) {
    const inner = layout.height - layout.margin.t - layout.margin.b;
    if (place === "none" || !names.length) {
      return { showlegend: false };
    }
    if (place === "right") {
      const longest = Math.max(...names.map((name) => name.length));
      const legend = { orientation: "v", x: 1.01, xanchor: "left", y: 1, yanchor: "top" };
      return { legend, right: Math.min(7 * longest + 56, width / 2) };
    }
    const row = names.reduce((rows, name) => {
      const wide = 7 * name.length + 48;
      const fits = rows[rows.length - 1] + wide <= width - 90;
      return fits ? [...rows.slice(0, -1), rows[rows.length - 1] + wide] : [...rows, wide];
    }, [0]).length;
    const legend = { orientation: "h", x: 0, xanchor: "left", y: -52 / inner, yanchor: "top" };
    return { legend, below: LEGEND_ROW * row };
  }

  /* --- Paper is white: what the dark scheme draws gets its colours of the light one ------------ */

  let known = null;

  function twins() {
    known = known || JSON.parse(document.getElementById("light-twins").textContent);
    return known;
  }

  const parts = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
  const byte = (one) => Math.round(one).toString(16).padStart(2, "0").toUpperCase();
  const hexOf = (rgb) => "#" + rgb.map(byte).join("");
  const between = (from, to, share) => from.map((one, index) => one + share * (to[index] - one));

  /* A ramp's colour lies on a line between two of its corners; so does its twin, as far along. */
  function onRamp(hex, ramp) {
    const colour = parts(hex);
    for (let corner = 1; corner < ramp.length; corner += 1) {
      const [from, lightFrom] = ramp[corner - 1].map(parts);
      const [to, lightTo] = ramp[corner].map(parts);
      const way = to.map((one, index) => one - from[index]);
      const done = way.reduce((sum, one, index) => sum + one * (colour[index] - from[index]), 0);
      const share = Math.min(Math.max(done / way.reduce((sum, one) => sum + one * one, 0), 0), 1);
      if (Math.hypot(...between(from, to, share).map((one, index) => one - colour[index])) < 1.5) {
        return hexOf(between(lightFrom, lightTo, share));
      }
    }
    return null;
  }

  function twin(hex, ramps) {
    const { pairs, ramps: all } = twins();
    const found = pairs[hex.toUpperCase()];
    return found || (ramps && all.map((ramp) => onRamp(hex, ramp)).find(Boolean)) || hex;
  }

  function lightText(text, ramps) {
    const faint = /^rgba?\((\d+), ?(\d+), ?(\d+)(.*)\)$/.exec(text);
    if (faint) {
      const rgb = parts(twin(hexOf(faint.slice(1, 4).map(Number)), ramps));
      return (faint[4] ? "rgba(" : "rgb(") + rgb.join(",") + faint[4] + ")";
    }
    if (/^#[0-9a-f]{6}$/i.test(text)) {
      return twin(text, ramps);
    }
    return text.replace(/(color: ?)(#[0-9a-f]{6})/gi, (_, name, hex) => name + twin(hex, ramps));
  }

  /* A map's scale is the whole of viridis in both schemes. */
  function light(value, ramps = true) {
    if (typeof value === "string") {
      return lightText(value, ramps);
    }
    if (!value || typeof value !== "object" || ArrayBuffer.isView(value)) {
      return value;
    }
    if (Array.isArray(value)) {
      return value.map((one) => light(one, ramps));
    }
    const inside = (name, one) => [name, light(one, ramps && name !== "colorscale")];
    return Object.fromEntries(Object.entries(value).map(([name, one]) => inside(name, one)));
  }

  /* The dark scheme is told by its paper. */
  function isDark(layout) {
    const paper = ((layout.template || {}).layout || {}).paper_bgcolor || "";
    return twins().pairs[paper.toUpperCase()] !== undefined;
  }

  /* Ticks of rates would run into each other on a narrow picture: some of the decades go. */
  function thinned(layout, width) {
    const room = width - layout.margin.l - layout.margin.r;
    Object.entries(layout).filter(([name, axis]) => /^xaxis/.test(name) && axis.type === "log").forEach(([, axis]) => {
      const [from, to] = axis.domain || [0, 1];
      const [low, high] = axis.range || [0, 1];
      const every = Math.ceil((42 * (high - low)) / (room * (to - from)));
      if (typeof axis.dtick === "number" && every > axis.dtick) {
        axis.dtick = every;
        axis.tick0 = Math.floor(high);
      }
    });
  }

  function forPaper(plot, wanted) {
    const { width, points } = paperSize(plot, wanted);
    const layout = JSON.parse(JSON.stringify(plot.layout));
    const names = plot._fullData.filter((one) => one.showlegend && one.visible === true && one.name).map((one) => one.name);
    const shown = (layout.margin || {}).t > 70 || (layout.legend || {}).y > 0.5;
    const place = wanted.legend === "shown" && width < 560 && shown ? "below" : wanted.legend;
    layout.height = layout.height || plot.offsetHeight;
    layout.margin = Object.assign({ l: 72, r: 16, t: 48, b: 52 }, layout.margin);
    layout.legend = window.etascope.unpinned(layout);
    if (place !== "shown") {
      const { legend, right, below, ...rest } = legendOf(layout, place, names, width);
      const above = layout.margin.t > 60 ? layout.margin.t - 44 : 0;
      layout.margin.t -= above;
      layout.height -= above;
      const old = layout.margin.b - 52;
      layout.margin.b += (below || 0) - Math.max(old, 0);
      layout.height += (below || 0) - Math.max(old, 0);
      layout.margin.r = right || layout.margin.r;
      Object.assign(layout, rest, legend ? { legend: Object.assign({}, layout.legend, legend) } : {});
    }
    if (!wanted.title) {
      const gone = Math.min(layout.margin.t - 12, 36);
      layout.title = { text: "" };
      layout.margin.t -= gone;
      layout.height -= gone;
    }
    thinned(layout, width);
    const broken = (layout.annotations || []).find((one) => one.name === "broken" && !one.yshift);
    if (broken && width < 560) { // below the legend of colours instead of over it
      broken.yshift = -58;
      [layout.margin.b, layout.height] = [layout.margin.b + 24, layout.height + 24];
    }
    if ((((layout.xaxis || {}).title || {}).text || "").endsWith(" (drag the line)")) {
      layout.xaxis.title.text = "learning rate";
    }
    layout.shapes = (layout.shapes || []).filter((shape) => shape.name !== "scrubber");
    window.etascope.wrapTitles(layout, width);
    Object.assign(layout, { width, autosize: false, paper_bgcolor: "#FFFFFF" });
    const figure = { data: plot.data, layout };
    return { figure: isDark(layout) ? light(figure) : figure, width, height: layout.height, points };
  }

  /* An SVG that says how large it is on paper. */
  function sized(url, width, height, points) {
    const svg = svgOf(url).replace(
      /<svg([^>]*?) width="[^"]*" height="[^"]*"/,
      '<svg$1 width="' + points.toFixed(2) + 'pt" height="' + ((points * height) / width).toFixed(2) + 'pt"'
    );
    return "data:image/svg+xml," + encodeURIComponent(svg);
  }

  const captionOf = (graph) => {
    const plot = document.querySelector("#" + graph + " .js-plotly-plot");
    return (plot && plot.layout && (plot.layout.meta || {}).caption) || "";
  };

  async function exportPaper(plot, kind, filename, wanted) {
    const { figure, width, height, points } = forPaper(plot, wanted);
    const { format, keep } = KINDS[kind];
    const scale = kind === "png" ? Math.max(2, (points / width) * (300 / POINTS_PER_INCH)) : 1;
    const shown = format === "svg" && hasCells(figure.data) ? inVectors(figure) : figure;
    const url = await window.Plotly.toImage(shown, { format, width, height, scale });
    const ratio = points / POINTS_PER_PIXEL / width;
    if (kind === "svg") {
      download(sized(url, width, height, points), filename + ".svg");
    } else {
      await keep(url, width * ratio, height * ratio, filename);
    }
  }

  async function exportPicture(graph, kind, filename, wanted) {
    const plot = document.querySelector("#" + graph + " .js-plotly-plot");
    if (!plot || !window.Plotly) {
      say("There is no picture yet.");
      return;
    }
    if (wanted) {
      try {
        await exportPaper(plot, kind, filename, wanted);
      } catch (error) {
        say("The picture could not be made. " + error.message);
      }
      return;
    }
    const { format, scale, keep } = KINDS[kind];
    const [width, height] = [plot.offsetWidth, plot.offsetHeight];
    const shown = format === "svg" && hasCells(plot.data) ? inVectors(plot) : plot;
    try {
      await keep(await window.Plotly.toImage(shown, { format, width, height, scale }), width, height, filename);
    } catch (error) {
      say("The picture could not be made. " + error.message);
    }
  }

  Object.assign(window.etascope, { exportPicture, captionOf });
})();
