// All samples of an item side by side: what they share once, then a column each.
async function itemView(item) {
  const places = item.samples.flatMap((samples, run) => samples.map((place) => [run, place]));
  const samples = [];
  for (const [run, place] of places) samples.push(await sampleAt(run, place));
  const shared = sharedTurns(samples);
  const view = make("div", { class: "sample" }, words("h3", item.name), verdict(item));
  if (shared.length) view.append(make("div", { class: "conversation" }, shared.map((turn) => turnView(turn, []))));
  const columns = places.map(([run, place], i) => {
    const turns = (samples[i].turns || []).slice(shared.length);
    const several = item.samples[run].length > 1 ? `, ${item.samples[run].indexOf(place) + 1} of ${item.samples[run].length}` : "";
    const title = config.runs.length > 1 ? `${run === 0 ? "this run" : "baseline"}${several}` : config.runs[run].name[place];
    return make("section", { class: `column run${run}` }, sampleView(run, place, samples[i], { turns, title, depth: 4 }));
  });
  view.append(make("div", { class: "side", tabindex: "0", role: "group", "aria-label": "Samples side by side" }, columns));
  return view;
}

function verdict(item) {
  const [value, before] = item.values;
  const parts = [`mean score ${number(value)}${spread(item.samples[0], 0)}`];
  if (config.runs.length > 1) {
    parts.push(`baseline ${number(before)}${spread(item.samples[1], 1)}`);
    if (item.change) parts.push(`${signed(value - before)}, ${item.change}`);
    else parts.push(item.samples[0].length ? "not in the baseline" : "only in the baseline");
  }
  return make("p", { class: "verdict" }, parts.join(" · "));
}

// Over how many samples a mean is, and between which scores they lie.
function spread(places, run) {
  if (places.length < 2) return "";
  const scores = places.map((place) => config.runs[run].score[place]).filter((score) => score !== null);
  const [least, most] = [Math.min(...scores), Math.max(...scores)];
  return ` over ${places.length} samples${least < most ? `, scores from ${number(least)} to ${number(most)}` : ""}`;
}

// The turns before any action, if all samples have the same.
function sharedTurns(samples) {
  const beginnings = samples.map(({ turns = [] }) => {
    const end = turns.findIndex((turn) => turn.step !== undefined);
    return end < 0 ? turns : turns.slice(0, end);
  });
  const told = beginnings.filter((turns) => turns.length);
  const first = JSON.stringify(told[0] || []);
  return told.length === samples.length && told.every((turns) => JSON.stringify(turns) === first) ? told[0] : [];
}
