// One sample in full.
function sampleView(run, place, sample, { turns = sample.turns || [], title = config.runs[run].name[place], depth = 3 } = {}) {
  const index = config.runs[run];
  const heading = `h${depth}`;
  const below = `h${depth + 1}`;
  const outcome = index.outcome[place];
  const view = make("div", { class: `sample ${outcome}` });
  const score = index.score[place];
  view.append(
    words(heading, title),
    make("p", { class: "verdict" },
      badge(outcome), ` ${config.outcomes[outcome][1]}`,
      score === null ? "" : make("strong", {}, ` · score ${number(score)}`),
      index.length[place] === null ? "" : ` · ${index.length[place].toLocaleString("en")} ${index.unit}`,
    ),
  );
  if (sample.score) view.append(...answerView(sample.score));
  if (sample.error) view.append(errorView(sample.error));
  view.append(conversationView(turns, sample.steps || [], below));
  if (sample.score && (sample.score.parts || sample.score.feedback)) {
    view.append(make(below, {}, "Reward"), scoreTable(sample.score));
  }
  if (sample.rows) view.append(folded("Tokens, log probabilities and masks", () => tokenView(sample.rows), { class: "fold" }));
  view.append(folded("Facts", () => factsView(sample), { class: "fold" }));
  return view;
}

// What was looked for, and what was found.
function answerView(score) {
  const facts = score.facts || {};
  const names = ["expected", "extracted", "status", "rule", "reason"].filter((name) => facts[name] !== undefined);
  if (!names.length) return [];
  return [make("dl", { class: "answer" }, names.map((name) => make("div", {}, make("dt", {}, name), words("dd", facts[name]))))];
}

function errorView(error) {
  const where = error.phase ? ` in ${error.phase}` : "";
  return make("div", { class: "error" },
    words("p", `${error.type || "error"}${where}`, { class: "kind" }),
    longText(error.message),
    error.traceback ? folded("Traceback", () => longText(error.traceback, [], { class: "text code" })) : null,
  );
}

function conversationView(turns, steps, heading) {
  const view = make("div", { class: turns.length > 40 ? "conversation many" : "conversation" }, make(heading, {}, "Conversation"));
  if (!turns.length) view.append(make("p", { class: "hint" }, "No step was recorded."));
  view.append(...turns.map((turn) => turnView(turn, steps)));
  return view;
}

function turnView(turn, steps) {
  const step = turn.step === undefined ? null : steps[turn.step];
  const title = make("div", { class: "who" }, words("span", turn.name ? `${turn.role} (${turn.name})` : turn.role));
  if (turn.answers) title.append(words("small", ` answers ${turn.answers}`));
  if (step) {
    const told = [steps.length > 1 ? `step ${turn.step}` : null, `reward ${number(step.reward)}`,
      step.tokens === null ? null : `${step.tokens.toLocaleString("en")} tokens`,
      step.stop ? `stop: ${step.stop}` : null, step.version ? `version ${step.version}` : null];
    title.append(words("small", told.filter((fact) => fact !== null).join(" · ")));
  }
  const folds = turn.role === "tool" || turn.role === "function";
  const body = (turn.parts || []).map((part, i) => partView(part, i === 0 ? turn.marks : []));
  const view = make("div", { class: `turn ${step ? "action" : "shown"}`, "data-role": turn.role }, title);
  if (turn.reasoning) view.append(folded("Reasoning", () => longText(turn.reasoning), { class: "fold" }));
  if (turn.thinking) view.append(folded(`Thinking, ${[...turn.thinking].length.toLocaleString("en")} characters of the reply`, () => longText(turn.thinking), { class: "fold" }));
  if (folds && body.length) {
    const all = (turn.parts || []).map((part) => (typeof part === "string" ? part : part.type)).join(" ");
    view.append(folded(words("span", preview(all)), () => make("div", {}, body), { class: "fold" }));
  } else view.append(...body);
  view.append(...(turn.calls || []).map(callView));
  if (turn.extra) view.append(folded("Further fields", () => longText(turn.extra, [], { class: "text code" }), { class: "fold" }));
  return view;
}

function preview(text) {
  const line = text.slice(0, 200).replace(/\s+/g, " ").trim();
  return line.length > 80 || text.length > 200 ? `${line.slice(0, 80)}…` : line;
}

function callView(call) {
  const title = make("span", {}, words("code", call.name), " ", words("span", preview(call.arguments), { class: "dim" }));
  const body = () => make("div", {}, longText(call.arguments, [], { class: "text code" }), call.id ? words("p", `id ${call.id}`, { class: "note" }) : "");
  return folded(title, body, { class: "fold call" });
}

function partView(part, marks) {
  if (typeof part === "string") return longText(part, marks);
  if (part.type === "image" && /^data:image\/(png|jpeg|gif|webp);base64,/.test(part.url)) {
    return make("img", { src: part.url, alt: part.alt || "an image without a description", loading: "lazy" });
  }
  return make("p", { class: "note" }, `${part.type}, which is not loaded: `, words("span", preview(part.url)));
}

function scoreTable(score) {
  const body = make("tbody");
  const add = (name, part, depth) => {
    const facts = Object.entries(part.facts || {}).filter(() => depth > 0);
    body.append(make("tr", {},
      words("th", name, { scope: "row", class: `depth${Math.min(depth, 4)}` }),
      make("td", { class: "number" }, number(part.value)),
      make("td", {}, bar(part.value)),
      make("td", {}, part.feedback ? longText(part.feedback) : "",
        facts.length ? folded("what it says", () => pairs(facts)) : ""),
    ));
    for (const [each, inner] of Object.entries(part.parts || {})) add(each, inner, depth + 1);
  };
  add("score", score, 0);
  const heads = ["component", "value", "", "remarks"].map((head) => (head ? make("th", { scope: "col" }, head) : make("td")));
  return make("table", { class: "scores" }, make("thead", {}, make("tr", {}, heads)), body);
}

function bar(value) {
  if (value < 0 || value > 1) return "";
  return make("meter", { min: 0, max: 1, value, "aria-hidden": "true" });
}

function pairs(entries) {
  return make("dl", { class: "pairs" }, entries.flatMap(([name, value]) => [words("dt", name), make("dd", {}, longText(value))]));
}

function factsView(sample) {
  const view = make("div", {}, pairs(Object.entries(sample.facts || {})));
  const code = (title, text) => view.append(folded(title, () => longText(text, [], { class: "text code" })));
  if (sample.score && sample.score.facts) view.append(folded("Metadata of the score", () => pairs(Object.entries(sample.score.facts))));
  if (sample.item) code("Item", sample.item);
  if (sample.metadata) code("Metadata", sample.metadata);
  (sample.steps || []).forEach((step, i) => {
    if (step.info) code(`What the environment said at step ${i}`, step.info);
    if (step.policy) code(`What the policy said at step ${i}`, step.policy);
  });
  return view;
}
