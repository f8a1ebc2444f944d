const box = document.getElementById("list");
const detail = document.getElementById("detail");
const status = document.getElementById("status");
let chosen = null;

function sampleRow(place) {
  const answer = main.expected[place] === null ? null : [main.extracted[place] ?? "none", main.expected[place]];
  return [
    make("span", {}, badge(main.outcome[place]), make("span", { class: "spoken" }, config.outcomes[main.outcome[place]][1])),
    make("span", { class: "name" }, words("span", main.name[place])),
    make("span", { class: "figure" }, main.score[place] === null ? config.outcomes[main.outcome[place]][1] : number(main.score[place])),
    words("span", main.snippet[place], { class: "snippet" }),
    answer ? make("span", { class: "small" }, words("span", answer[0]), main.outcome[place] === "credited" ? "" : words("span", ` ≠ ${answer[1]}`))
      : make("span", { class: "small" }, main.length[place] === null ? "" : `${main.length[place].toLocaleString("en")} ${main.unit}`),
  ];
}

const SIGNS = 8; // of samples that have a sign each in the row of their item

function sign(outcome) {
  const [text, name] = config.outcomes[outcome];
  return make("span", { class: `badge ${outcome}`, title: name, role: "img", "aria-label": name }, text);
}

function counted(places, run) {
  const count = (outcome) => places.filter((place) => config.runs[run].outcome[place] === outcome).length;
  return Object.keys(config.outcomes).filter(count).flatMap((outcome) => [sign(outcome), make("span", {}, String(count(outcome)))]);
}

function itemRow(item) {
  const signs = { better: "▲", worse: "▼", equal: "=" };
  const strip = make("span", { class: "strip" });
  const many = item.samples.flat().length > SIGNS;
  item.samples.forEach((places, run) => {
    if (run && places.length) strip.append(make("span", { class: "dim" }, "\u00a0was\u00a0"));
    strip.append(...(many ? counted(places, run) : places.map((place) => sign(config.runs[run].outcome[place]))));
  });
  const first = item.samples[0].length ? main.snippet[item.samples[0][0]] : config.runs[1].snippet[item.samples[1][0]];
  return [
    item.change ? make("span", {}, make("span", { class: `badge ${item.change}`, title: item.change, "aria-hidden": "true" }, signs[item.change]), make("span", { class: "spoken" }, item.change)) : make("span"),
    make("span", { class: "name" }, words("span", item.name)),
    make("span", { class: "figure" }, item.change ? signed(difference(item)) : number(item.values[0])),
    words("span", first, { class: "snippet" }),
    strip,
  ];
}

function choose(row, byHand) {
  if (typeof row === "object") remember("item", row.name);
  else remember("sample", main.name[row]);
  return show(row, byHand);
}

async function show(row, byHand) {
  chosen = row;
  const view = typeof row === "object" ? await itemView(row) : sampleView(0, row, await sampleAt(0, row));
  if (chosen !== row) return; // another was chosen meanwhile
  const pressed = detail.contains(document.activeElement) ? document.activeElement.dataset.step : null;
  detail.replaceChildren(controls(), view);
  if (pressed) (detail.querySelector(`[data-step="${pressed}"]:enabled`) || detail).focus();
  detail.scrollTop = 0;
  if (byHand && matchMedia("(max-width: 60rem)").matches) enter();
}

function controls() {
  const step = (text, by) => make("button", { type: "button", "data-step": by, click: () => list.move(by), disabled: by < 0 ? list.position <= 0 : list.position >= list.length - 1 }, text);
  return make("div", { class: "controls" },
    step("Previous", -1), step("Next", 1),
    make("button", { type: "button", class: "back", click: () => box.focus() }, "Back to the list"),
    make("span", { class: "dim" }, `${(list.position + 1).toLocaleString("en")} of ${list.length.toLocaleString("en")}`),
  );
}

function enter() {
  detail.focus();
  detail.scrollIntoView({ block: "start" });
}

// The address tells what is shown, so that it can be bookmarked.
function remember(kind, name) {
  try {
    history.replaceState(null, "", `#${kind}=${encodeURIComponent(name)}`);
  } catch {
    // A lone surrogate in the name has no form in an address.
  }
}

async function recall() {
  const match = /^#(sample|item)=(.*)$/s.exec(location.hash);
  if (!match) return;
  let name = match[2];
  try {
    name = decodeURIComponent(name);
  } catch {
    return;
  }
  if (form.elements.view) form.elements.view.value = match[1] === "item" ? "items" : "samples";
  await filter();
  const row = viewed() === "items" ? config.items.find((item) => item.name === name) : main.name.indexOf(name);
  if (row === undefined || row === -1) return;
  list.choose(row);
  document.getElementById("samples").scrollIntoView();
}

let turn = 0;

async function filter() {
  const mine = ++turn;
  const rows = await matching((share) => {
    if (mine === turn) status.textContent = `Searching: ${Math.round(100 * share)}%`;
  });
  if (mine !== turn) return;
  if (chosen === null && rows.length) show(rows[0]); // which the address need not tell
  list.show(rows, chosen);
  nothing.hidden = rows.length > 0;
  const all = viewed() === "items" ? config.items.length : main.name.length;
  status.textContent = `${rows.length.toLocaleString("en")} of ${all.toLocaleString("en")} ${viewed()}`;
}

const nothing = make("p", { class: "hint nothing" }, main.name.length ? "No sample meets all conditions." : "There are no samples.");
nothing.hidden = true;
box.before(nothing);

const list = virtualList(box, {
  render: (row) => (typeof row === "object" ? itemRow(row) : sampleRow(row)),
  choose,
  enter,
});

let pause = null;
form.addEventListener("input", (event) => {
  clearTimeout(pause);
  pause = setTimeout(filter, event.target.name === "text" ? 200 : 0);
});
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(filter));
detail.addEventListener("keydown", (event) => {
  if (event.key === "Escape") box.focus();
});
for (const button of document.querySelectorAll("button[data-change]")) {
  button.addEventListener("click", () => {
    form.reset();
    form.querySelector(`input[name="change"][value="${button.dataset.change}"]`).checked = true;
    filter();
    document.getElementById("samples").scrollIntoView();
    box.focus({ preventScroll: true });
  });
}
addEventListener("hashchange", recall);
fillReasons();
filter().then(recall);
