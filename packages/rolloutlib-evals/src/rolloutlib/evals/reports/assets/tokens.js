const TOKENS = 4_000; // that are made at once

const LEVELS = [
  [0.9, "p0"],
  [0.5, "p1"],
  [0.2, "p2"],
  [0.05, "p3"],
  [0, "p4"],
];

function level(logprob) {
  const probability = Math.exp(logprob);
  return LEVELS.find(([least]) => probability >= least)[1];
}

// The tokens of a sample, a row for each that training would have: what was sampled, and what it followed.
function tokenView(rows) {
  const view = make("div", { class: "tokens" });
  const named = rows.some((row) => row.tokens.slice(0, 20).some((id) => vocabulary(id) !== undefined));
  view.append(
    make("p", { class: "note" },
      "What the policy sampled is framed, and is what a loss mask trains; the rest is its context. ",
      named ? "" : "Tokens are shown by their ids. ",
      "Colours tell how likely a sampled token was: ",
      ...LEVELS.flatMap(([least, name], i) => [
        make("span", { class: `token sampled ${name}` }, least ? `${least} or more` : `below ${LEVELS[i - 1][0]}`), " ",
      ]),
    ),
  );
  rows.forEach((row, i) => view.append(tokenRow(row, rows.length > 1 ? i : null)));
  return view;
}

function tokenRow(row, rank) {
  const sampled = new Map(); // from a place to its place among the sampled ones
  for (const [start, stop] of row.sampled) for (let i = start; i < stop; i++) sampled.set(i, sampled.size);
  const known = (row.logprobs || []).filter((value) => value !== null);
  const mean = known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  const facts = [
    `${row.tokens.length.toLocaleString("en")} tokens`,
    `${sampled.size.toLocaleString("en")} sampled`,
    mean === null ? "no log probabilities" : `mean log probability ${number(mean)}`,
  ];
  const box = make("div", { class: "token-row" });
  const stepOf = (place) => row.steps.find(([start, stop]) => place >= start && place < stop);
  const tell = (place) => {
    const id = row.tokens[place];
    const parts = [`token ${place}`, id === null ? "of unknown id" : `id ${id}`];
    if (sampled.has(place)) {
      const step = stepOf(place);
      parts.push(step ? `sampled at step ${step[2]}` : "sampled");
      const logprob = row.logprobs ? row.logprobs[sampled.get(place)] : null;
      if (logprob !== null) parts.push(`log probability ${logprob}`, `probability ${number(Math.exp(logprob))}`);
    } else parts.push("context, masked");
    return parts.join(", ");
  };
  const more = (from) => {
    const to = Math.min(from + TOKENS, row.tokens.length);
    for (let place = from; place < to; place++) {
      const id = row.tokens[place];
      const logprob = row.logprobs && sampled.has(place) ? row.logprobs[sampled.get(place)] : null;
      const name = sampled.has(place) ? `token sampled ${logprob === null ? "" : level(logprob)}` : "token";
      box.append(words("span", vocabulary(id) ?? id ?? "·", { class: name, title: tell(place) }), "\u200b");
    }
    if (to === row.tokens.length) return;
    const left = (row.tokens.length - to).toLocaleString("en");
    const button = make("button", { type: "button", class: "gap" }, `Show more: ${left} tokens are left`);
    button.addEventListener("click", () => {
      button.remove();
      more(to);
    });
    box.append(button);
  };
  more(0);
  const title = `${rank === null ? "" : `Row ${rank + 1}: `}${facts.join(", ")}`;
  return make("section", {}, make("h5", {}, title), row.logprobs ? curve(row.logprobs) : null, box);
}

// The log probabilities in order, as a line.
function curve(logprobs) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  const line = document.createElementNS(space, "polyline");
  const stride = Math.ceil(logprobs.length / 600);
  const values = [];
  for (let i = 0; i < logprobs.length; i += stride) {
    const known = logprobs.slice(i, i + stride).map((value) => value ?? -20);
    values.push(Math.max(Math.min(...known), -20));
  }
  const lowest = Math.min(...values, -1);
  const place = (value, i) => `${(600 * (i + 0.5)) / values.length},${2 + (36 * value) / lowest}`;
  line.setAttribute("points", values.map(place).join(" "));
  drawing.setAttribute("viewBox", "0 0 600 40");
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `log probabilities in order, from 0 down to ${number(lowest)}`);
  drawing.classList.add("curve");
  drawing.append(line);
  return drawing;
}
