document.documentElement.dataset.ready = "yes"; // what needs scripts is hidden without them
const config = JSON.parse(document.getElementById("config").textContent);

// Makes an element; what is text stays text, since nothing here parses HTML.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// A part that is made when it is first opened.
function folded(title, build, attributes = {}) {
  const part = make("details", attributes, make("summary", {}, title));
  let built = false;
  part.addEventListener("toggle", () => {
    if (!part.open || built) return;
    built = true;
    part.append(build());
  });
  return part;
}

function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e15)) return value.toExponential(digits - 1).replace(/\.?0*e\+?/, "e");
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 8 });
}

function badge(outcome) {
  const [sign, name] = config.outcomes[outcome];
  return make("span", { class: `badge ${outcome}`, title: name, "aria-hidden": "true" }, sign);
}

function signed(value) {
  return `${value > 0 ? "+" : value < 0 ? "−" : "±"}${number(Math.abs(value))}`;
}
