// A list of any length, of which only the rows in sight are made.
function virtualList(box, { render, choose, enter }) {
  const height = 3.75 * parseFloat(getComputedStyle(document.documentElement).fontSize);
  const inner = make("div", { class: "rows", role: "presentation" });
  let rows = [];
  let active = -1;
  box.append(inner);

  function draw() {
    const first = Math.max(Math.floor(box.scrollTop / height) - 6, 0);
    const last = Math.min(Math.ceil((box.scrollTop + box.clientHeight) / height) + 6, rows.length);
    const options = [];
    const shown = [];
    if (active >= 0 && (active < first || active >= last)) shown.push(active); // stays known to readers
    for (let i = first; i < last; i++) shown.push(i);
    for (const i of shown) {
      const option = make("div", {
        id: `row-${i}`, class: "row", role: "option",
        "aria-setsize": rows.length, "aria-posinset": i + 1, "aria-selected": String(i === active),
      }, render(rows[i]));
      option.style.top = `${i * height}px`;
      option.addEventListener("click", () => select(i, true));
      options.push(option);
    }
    inner.style.height = `${rows.length * height}px`;
    inner.replaceChildren(...options);
    if (active >= 0) box.setAttribute("aria-activedescendant", `row-${active}`);
    else box.removeAttribute("aria-activedescendant");
  }

  function select(i, byHand) {
    if (i < 0 || i >= rows.length) return;
    active = i;
    const top = i * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
    draw();
    choose(rows[i], byHand);
  }

  box.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  new ResizeObserver(draw).observe(box);
  box.addEventListener("keydown", (event) => {
    const page = Math.max(Math.floor(box.clientHeight / height) - 1, 1);
    const moves = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: rows.length - 1 };
    if (event.key === "Enter" && active >= 0) enter();
    else if (event.key in moves && !event.altKey && !event.ctrlKey && !event.metaKey) {
      select(Math.min(Math.max(moves[event.key], 0), rows.length - 1), false);
    } else return;
    event.preventDefault();
  });

  return {
    // Takes other rows; the chosen one stays chosen if it is among them.
    show(next, chosen) {
      rows = next;
      active = rows.indexOf(chosen);
      box.scrollTop = active < 0 ? 0 : Math.max(active * height - box.clientHeight / 2, 0);
      draw();
    },
    move: (by) => select(active < 0 ? 0 : active + by, true),
    choose: (row) => select(rows.indexOf(row), false),
    get position() { return active; },
    get length() { return rows.length; },
  };
}
