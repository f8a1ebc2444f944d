const SHOWN = 20_000; // characters of a text that are shown at once
const HEAD = 8_000;
const BLOCK = 5_000; // that are laid out at once
const AROUND = 400;
const LINE = 500; // characters of a text that has one line
const MOST_MARKS = 2_000;

const point = (code) => `\\u{${code.toString(16)}}`;
const hidden = new RegExp(
  `(${config.hidden.map(([low, high]) => `[${point(low)}-${point(high)}]`).join("|")})\\1*`,
  "gu",
);

function hex(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

// Appends text in which characters that cannot be seen, or change what is seen, stand by their numbers.
function append(parent, text) {
  let last = 0;
  let marks = 0;
  for (const match of text.matchAll(hidden)) {
    if (match[0] === "\r" && text[match.index + 1] === "\n") continue;
    const character = match[1];
    const times = match[0].length / character.length;
    const words = hex(character) + (times > 1 ? ` ×${times}` : "");
    parent.append(text.slice(last, match.index));
    if (marks++ < MOST_MARKS) parent.append(make("span", { class: "hidden", title: "a character that is not shown as it is" }, words));
    else parent.append(`[${words}]`);
    last = match.index + match[0].length;
  }
  parent.append(text.slice(last));
  return parent;
}

// A line of text that may hold anything, or its beginning: what may be long stands somewhere else in full.
function words(tag, text, attributes = {}) {
  return append(make(tag, { dir: "auto", ...attributes }), beginning(String(text)));
}

function beginning(text) {
  if (text.length <= LINE) return text;
  return `${text.slice(0, inside(text, LINE))}… (${text.length.toLocaleString("en")} characters)`;
}

// Moves a place in a text out of the middle of a character of two units.
function inside(text, place) {
  const code = text.charCodeAt(place);
  return code >= 0xdc00 && code <= 0xdfff ? place - 1 : place;
}

// A text of any length, with highlights; of a long one the beginning, the end and what is highlighted.
function longText(text, highlights = [], attributes = {}) {
  const block = make("div", { class: "text", dir: "auto", ...attributes });
  const marks = [...highlights].sort((a, b) => a.start - b.start || b.stop - a.stop);
  let open = [[0, text.length]];
  if (text.length > SHOWN) {
    const near = marks.map(({ start, stop }) => [start - AROUND, Math.min(stop, start + SHOWN) + AROUND]);
    open = [[0, HEAD], ...near, [text.length - HEAD / 2, text.length]]
      .map(([start, stop]) => [inside(text, Math.max(start, 0)), inside(text, Math.min(stop, text.length))])
      .sort((a, b) => a[0] - b[0]);
  }
  let place = 0;
  for (const [start, stop] of open) {
    if (stop <= place) continue;
    if (start > place) block.append(gap(text, place, start, marks));
    block.append(marked(text, Math.max(start, place), stop, marks));
    place = stop;
  }
  return block;
}

function gap(text, start, stop, marks) {
  const count = (stop - start).toLocaleString("en");
  const button = make("button", { type: "button", class: "gap" }, `Show all: ${count} more characters`);
  button.addEventListener("click", () => button.replaceWith(marked(text, start, stop, marks)));
  return button;
}

// Browsers lay out long paragraphs slowly, so long texts are cut into blocks, at the ends of lines if there are any.
function marked(text, from, to, marks) {
  if (to - from <= BLOCK) return markedBlock(text, from, to, marks);
  const whole = make("span");
  for (let start = from; start < to; ) {
    const line = text.lastIndexOf("\n", start + BLOCK) + 1;
    const stop = start + BLOCK >= to ? to : line > start ? line : inside(text, start + BLOCK);
    const block = markedBlock(text, start, stop, marks);
    block.className = "block";
    whole.append(block);
    start = stop;
  }
  return whole;
}

function markedBlock(text, from, to, marks) {
  const piece = make("span");
  let place = from;
  for (const mark of marks) {
    const start = Math.max(mark.start, place);
    const stop = Math.min(mark.stop, to);
    if (mark.start < from || mark.start > to || (mark.start === to && to < text.length) || stop < start) continue;
    append(piece, text.slice(place, start));
    piece.append(
      append(make("mark", { class: mark.status, title: beginning(mark.label) }), text.slice(start, stop)),
      make("span", { class: `mark-label ${mark.status}` }, "\u2009"),
    );
    append(piece.lastChild, beginning(mark.label));
    place = Math.max(place, stop);
  }
  append(piece, text.slice(place, to));
  return piece;
}
