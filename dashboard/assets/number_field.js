/* The one field for numbers: says at once what it understood, or why it did not.

   `read` follows ib_core/written.py; both are held to the same table of cases. */
(function () {
  "use strict";

  /* --- What is understood ----------------------------------------------------------------- */

  const DIGITS = "[0-9]+(?:_[0-9]+)*";
  const NUMBER = new RegExp(`^[+-]?(?:${DIGITS}\\.?(?:${DIGITS})?|\\.${DIGITS})(?:[eE][+-]?[0-9]+)?$`);
  const ONE_COMMA = /^[+-]?[0-9]*,[0-9]+$/;
  const SEPARATORS = /[,;\s]+/;
  const LONGEST = 40;
  const TINY = 1e-6;

  const plainOf = (text) => text.trim().replace(/\u2212/g, "-");
  const shown = (text) => (text.length <= LONGEST ? text : text.slice(0, LONGEST) + "…");

  function noNumber(plain, kind) {
    if (ONE_COMMA.test(plain)) {
      return kind.whole
        ? `One whole number belongs here, without a comma; got ${shown(plain)}.`
        : `Write ${shown(plain.replace(",", "."))}, with a point; got ${shown(plain)}.`;
    }
    if (SEPARATORS.test(plain)) {
      return `One number belongs here, not a list; got ${shown(plain)}.`;
    }
    const example = kind.whole ? "20" : "0.01 or 1e-2";
    return `That is no number: write it as ${example}; got ${shown(plain)}.`;
  }

  function accepts(kind, value) {
    const low = kind.beyond ? value > kind.low : value >= kind.low;
    return low && value <= kind.high && (!kind.whole || Number.isInteger(value));
  }

  /* Returns {value} (null for an empty text) or {wrong: a sentence}. */
  function read(text, kind) {
    const plain = plainOf(text);
    if (plain === "") {
      return kind.needed ? { wrong: `${kind.what} is needed.` } : { value: null };
    }
    if (!NUMBER.test(plain)) {
      return { wrong: noNumber(plain, kind) };
    }
    const value = Number(plain.replace(/_/g, ""));
    const vanished = value === 0 && /[1-9]/.test(plain.split(/[eE]/)[0]);
    if (!Number.isFinite(value) || vanished || !accepts(kind, value)) {
      const above = kind.low > 0 && kind.low <= TINY && value <= 0 && !vanished;
      return { wrong: `${kind.what} must be ${above ? "above 0" : kind.legal}; got ${shown(plain)}.` };
    }
    return { value: value === 0 ? 0 : value };
  }

  /* Returns the numbers of texts, each of its kind; null if one is wrong. */
  function readAll(kinds, texts) {
    const found = kinds.map((kind, index) => read(texts[index] || "", kind));
    return found.some((one) => one.wrong) ? null : found.map((one) => one.value);
  }

  const written = (value) => (value === null || value === undefined ? "" : String(value));

  /* --- The field -------------------------------------------------------------------------- */

  /* Where the decimal sign is a comma, a phone's number pad may have no point. */
  const pad = new Intl.NumberFormat().format(1.5).includes(".") ? "decimal" : "text";

  /* A column copied from a table has line ends, which a text field would drop: 16 and 64 would
     read 1664. So they are put in as what they are, a list. Returns the new text, or null. */
  function columnAsList(event, transfer) {
    const text = transfer.getData("text").trim();
    if (!/[\r\n]/.test(text)) {
      return null;
    }
    event.preventDefault();
    const field = event.target;
    const list = text.split(/[\r\n]+/).join(", ");
    const { value, selectionStart: start, selectionEnd: end } = field;
    /* Not by setRangeText: React would not know of it, and take a later deletion for no change. */
    field.value = value.slice(0, start) + list + value.slice(end);
    field.setSelectionRange(start + list.length, start + list.length);
    return field.value;
  }

  /* Props: `text` as typed; `value`, the last number that was right, if the field is given one;
     `kind`, what is taken (none: a list, which the server reads); `error` and `understood`, what
     the server says; `answers`, the text it says so about: not of what is there now. */
  function NumberField(props) {
    const React = window.React;
    const { id, kind, setProps } = props;
    const numeric = props.value !== undefined;
    const [text, setText] = React.useState(props.text || "");
    const known = React.useRef({ text: props.text, value: props.value });
    const last = React.useRef(props);
    const found = kind ? read(text, kind) : {};

    function typed(now) {
      const next = kind ? read(now, kind) : {};
      const change = { text: now, error: null, understood: null };
      if (numeric && typeof next.value === "number") {
        change.value = next.value;
      }
      setText(now);
      Object.assign(known.current, change);
      setProps(change);
    }

    /* What others set is shown: a number moved by a slider, a text filled in by the server; and a
       wrong text gives way to a number even if that is the last one that was right. */
    React.useEffect(() => {
      const before = last.current;
      const own = known.current;
      const by = props.dashRenderType;
      last.current = props;
      const moved = (name) => props[name] !== before[name] && props[name] !== own[name];
      const again = by !== "internal" && by !== before.dashRenderType && found.wrong;
      if (numeric && (moved("value") || again)) {
        Object.assign(own, { value: props.value, text: written(props.value) });
        setText(own.text);
        setProps({ text: own.text });
      } else if (moved("text")) {
        own.text = props.text;
        setText(props.text || "");
      }
    });

    const pasted = (event, transfer) => {
      const now = columnAsList(event, transfer);
      if (now !== null) {
        typed(now);
      }
    };
    const current = props.answers === text;
    const wrong = found.wrong || (current && props.error);
    const number = kind ? written(found.value) : current && props.understood;
    const note = wrong || (number && number !== text.trim() ? "= " + number : "");
    const h = React.createElement;
    return h(
      "div",
      { className: "number-field" + (props.small ? " number-field-small" : "") },
      props.label ? h("label", { htmlFor: id, className: "number-field-label" }, props.label) : null,
      h("input", {
        id,
        type: "text",
        value: text,
        inputMode: kind && kind.low >= 0 ? pad : "text",
        autoComplete: "off",
        spellCheck: false,
        placeholder: props.placeholder,
        className: "number-field-input",
        "aria-invalid": wrong ? "true" : undefined,
        "aria-describedby": id + "-note",
        onChange: (event) => typed(event.target.value),
        onPaste: (event) => pasted(event, event.clipboardData),
        onDrop: (event) => pasted(event, event.dataTransfer),
      }),
      h(
        "div",
        { id: id + "-note", className: "number-field-note" + (wrong ? " wrong" : ""), "aria-live": "polite" },
        note
      )
    );
  }
  NumberField.dashRenderType = true; // asks Dash to say who changed the props

  window.etascope_fields = { NumberField };
  Object.assign(window.etascope, { readNumber: read, readAll, writeNumber: written });
})();
