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

  async function exportPicture(graph, kind, filename) {
    const plot = document.querySelector("#" + graph + " .js-plotly-plot");
    if (!plot || !window.Plotly) {
      say("There is no picture yet.");
      return;
    }
    const { format, scale, keep } = KINDS[kind];
    const [width, height] = [plot.offsetWidth, plot.offsetHeight];
    try {
      await keep(await window.Plotly.toImage(plot, { format, width, height, scale }), width, height, filename);
    } catch (error) {
      say("The picture could not be made. " + error.message);
    }
  }

  Object.assign(window.etascope, { exportPicture });
})();
