/* Pictures to keep, exactly as they are shown: zoom, hidden curves and colours included. */
(function () {
  "use strict";

  const POINTS_PER_PIXEL = 0.75;
  const PRINT_SCALE = 4;

  function download(url, filename) {
    const anchor = document.createElement("a");
    anchor.href = url;
    anchor.download = filename;
    document.body.appendChild(anchor);
    anchor.click();
    anchor.remove();
  }

  /* --- A PDF of one page that is one image ------------------------------------------------ */

  const bytesOf = (text) => Uint8Array.from(text, (letter) => letter.charCodeAt(0) & 255);

  function pdfOf(jpeg, width, height) {
    const [w, h] = [width, height].map((pixels) => (pixels * POINTS_PER_PIXEL).toFixed(2));
    const content = "q " + w + " 0 0 " + h + " 0 0 cm /I Do Q";
    const image =
      "<< /Type /XObject /Subtype /Image /Width " + width * PRINT_SCALE + " /Height " + height * PRINT_SCALE +
      " /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /DCTDecode /Length " + jpeg.length + " >>\nstream\n";
    const objects = [
      ["<< /Type /Catalog /Pages 2 0 R >>"],
      ["<< /Type /Pages /Kids [3 0 R] /Count 1 >>"],
      ["<< /Type /Page /Parent 2 0 R /MediaBox [0 0 " + w + " " + h + "] /Contents 4 0 R /Resources << /XObject << /I 5 0 R >> >> >>"],
      ["<< /Length " + content.length + " >>\nstream\n" + content + "\nendstream"],
      [image, jpeg, "\nendstream"],
    ];
    const parts = [bytesOf("%PDF-1.4\n%\u00e2\u00e3\u00cf\u00d3\n")];
    const places = [];
    let length = parts[0].length;
    const add = (part) => {
      const bytes = typeof part === "string" ? bytesOf(part) : part;
      parts.push(bytes);
      length += bytes.length;
    };
    objects.forEach((pieces, index) => {
      places.push(length);
      add(index + 1 + " 0 obj\n");
      pieces.forEach(add);
      add("\nendobj\n");
    });
    const table = length;
    const entries = places.map((place) => String(place).padStart(10, "0") + " 00000 n \n").join("");
    add("xref\n0 6\n0000000000 65535 f \n" + entries);
    add("trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n" + table + "\n%%EOF\n");
    return new Blob(parts, { type: "application/pdf" });
  }

  function downloadPdf(url, width, height, filename) {
    const jpeg = bytesOf(window.atob(url.slice(url.indexOf(",") + 1)));
    const made = URL.createObjectURL(pdfOf(jpeg, width, height));
    download(made, filename + ".pdf");
    window.setTimeout(() => URL.revokeObjectURL(made), 10000);
  }

  /* --- Lines as lines: the browser's own printing ----------------------------------------- */

  function printPicture(url, width, height, filename) {
    const svg = decodeURIComponent(url.slice(url.indexOf(",") + 1));
    const frame = document.createElement("iframe");
    frame.className = "print-frame";
    frame.setAttribute("aria-hidden", "true");
    document.body.appendChild(frame);
    const page = frame.contentDocument;
    page.open();
    page.write(
      "<!DOCTYPE html><title>" + filename + "</title><style>@page{size:" + width + "px " + height +
        "px;margin:0}body{margin:0}svg{display:block}</style>" + svg
    );
    page.close();
    frame.contentWindow.addEventListener("afterprint", () => frame.remove());
    frame.contentWindow.focus();
    frame.contentWindow.print();
  }

  /* What plotly is asked for, and what becomes of it. */
  const KINDS = {
    svg: { format: "svg", scale: 1, keep: (url, w, h, name) => download(url, name + ".svg") },
    png: { format: "png", scale: 3, keep: (url, w, h, name) => download(url, name + ".png") },
    pdf: { format: "jpeg", scale: PRINT_SCALE, keep: downloadPdf },
    print: { format: "svg", scale: 1, keep: printPicture },
  };

  async function exportPicture(graph, kind, filename) {
    const plot = document.querySelector("#" + graph + " .js-plotly-plot");
    if (!plot || !window.Plotly) {
      return;
    }
    const { format, scale, keep } = KINDS[kind];
    const [width, height] = [plot.offsetWidth, plot.offsetHeight];
    keep(await window.Plotly.toImage(plot, { format, width, height, scale }), width, height, filename);
  }

  Object.assign(window.etascope, { exportPicture });
})();
