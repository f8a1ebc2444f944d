// The samples stand in pieces of their own behind this script, and are parsed when they are asked for.
const whole = new Promise((resolve) => {
  if (document.readyState !== "loading") resolve();
  else document.addEventListener("DOMContentLoaded", () => resolve());
});

const pieces = whole.then(() =>
  config.runs.map((_, run) => {
    const prefix = `chunk-${run}-`;
    return [...document.querySelectorAll(`script[id^="${prefix}"]`)].map((element) => ({
      element,
      start: Number(element.id.slice(prefix.length)),
    }));
  }),
);

let recent = { element: null, samples: [] };

function read(element) {
  if (recent.element !== element) recent = { element, samples: JSON.parse(element.textContent) };
  return recent.samples;
}

async function sampleAt(run, place) {
  const mine = (await pieces)[run];
  let low = 0;
  for (let high = mine.length; high - low > 1; ) {
    const middle = (low + high) >> 1;
    if (mine[middle].start <= place) low = middle;
    else high = middle;
  }
  return read(mine[low].element)[place - mine[low].start];
}

const vocabulary = (() => {
  let texts = null;
  return (id) => {
    if (texts === null) {
      const element = document.getElementById("vocabulary");
      texts = element ? JSON.parse(element.textContent) : {};
    }
    return texts[id];
  };
})();

// All that a search looks at, of one run, folded to one case; made once, a piece at a time.
const searched = [];

async function searchTexts(run, progress) {
  if (searched[run]) return searched[run];
  const texts = [];
  const names = config.runs[run].name;
  const mine = (await pieces)[run];
  for (const [count, { element }] of mine.entries()) {
    for (const sample of JSON.parse(element.textContent)) {
      const said = (sample.turns || []).flatMap((turn) => [
        ...(turn.parts || []).filter((part) => typeof part === "string"),
        turn.reasoning || "",
        turn.thinking || "",
        ...(turn.calls || []).flatMap((call) => [call.name, call.arguments]),
      ]);
      const error = sample.error ? [sample.error.message, sample.error.type || ""] : [];
      texts.push([names[texts.length], ...said, ...error].join("\n").toLowerCase());
    }
    if (count % 8 === 7) {
      progress(count / mine.length);
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
  searched[run] = texts;
  return texts;
}
