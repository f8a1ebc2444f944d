// Which samples or items are listed, and in which order.
const form = document.getElementById("filters");
const main = config.runs[0];
const changeOf = new Map(config.items.map((item) => [item, item.change]));
const itemOf = new Map();
for (const item of config.items) for (const place of item.samples[0]) itemOf.set(place, item);

function fillReasons() {
  const counts = new Map();
  main.reason.forEach((reason) => reason && counts.set(reason, (counts.get(reason) || 0) + 1));
  const names = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, 100);
  for (const name of names) form.elements.reason.append(words("option", `${preview(name)} (${counts.get(name)})`, { value: name }));
  form.elements.reason.closest("label").hidden = !names.length;
}

function viewed() {
  return form.elements.view ? form.elements.view.value : "samples";
}

const checked = (name) => new Set([...form.querySelectorAll(`input[name="${name}"]:checked`)].map((input) => input.value));

function bound(name, otherwise) {
  const text = form.elements[name].value;
  return text === "" ? otherwise : Number(text);
}

async function matching(progress) {
  const outcomes = checked("outcome");
  const changes = checked("change");
  const reason = form.elements.reason.value;
  const low = bound("low", null);
  const high = bound("high", null);
  const text = form.elements.text.value.toLowerCase();
  const places = [];
  const texts = text ? await searchTexts(0, progress) : null;
  for (let place = 0; place < main.name.length; place++) {
    const score = main.score[place];
    if (outcomes.size && !outcomes.has(main.outcome[place])) continue;
    if (changes.size && !changes.has(itemOf.get(place).change)) continue;
    if (reason && main.reason[place] !== reason) continue;
    if (low !== null && !(score !== null && score >= low)) continue;
    if (high !== null && !(score !== null && score <= high)) continue;
    if (texts && !texts[place].includes(text)) continue;
    places.push(place);
  }
  const anything = outcomes.size || changes.size || reason || low !== null || high !== null || text;
  if (viewed() === "samples") return ordered(places, sampleKey);
  if (!anything) return ordered([...config.items], itemKey);
  const found = new Set(places.map((place) => itemOf.get(place)));
  if (text && config.runs.length > 1 && anything === text) {
    const before = await searchTexts(1, progress); // of items that only the baseline has
    const said = (item) => !item.samples[0].length && item.samples[1].some((place) => before[place].includes(text));
    config.items.filter(said).forEach((item) => found.add(item));
  }
  return ordered([...found], itemKey);
}

function sampleKey(name, place) {
  if (name === "difference") return difference(itemOf.get(place));
  return main[name][place];
}

function itemKey(name, item) {
  if (name === "score") return item.values[0];
  if (name === "difference") return difference(item);
  if (name === "name") return item.name;
  const known = item.samples[0].map((place) => main[name][place]).filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

function difference({ change, values: [value, before] }) {
  return change ? value - before : null;
}

// What has no value stands at the end, whatever the direction.
function ordered(rows, key) {
  const order = form.elements.order.value;
  if (!order) return rows;
  const name = order.slice(0, -1);
  const sign = order.endsWith("-") ? -1 : 1;
  const keys = new Map(rows.map((row) => [row, key(name, row)]));
  return rows.sort((a, b) => {
    const [left, right] = [keys.get(a) ?? null, keys.get(b) ?? null];
    if (left === null || right === null) return (left === null) - (right === null);
    return left < right ? -sign : left > right ? sign : 0;
  });
}
