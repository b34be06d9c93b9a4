const data = JSON.parse(document.getElementById("data").textContent);
const cards = [...document.querySelectorAll(".card")];
const svg = (name, attributes) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};
const percent = (share) => (share < 100 && share > 0 ? "<1" : Math.round(share / 100)) + "\u202f%";

// --- attention: a word of a question is chosen, and what it looked at lights up
let on = null; // the chosen word
const layers = document.getElementById("layers");
layers?.addEventListener("change", () => { const word = on; clear(); if (word) choose(word); });

function clear() {
  if (!on) return;
  const card = on.closest(".card");
  on.classList.remove("on");
  card.querySelector(".frame svg")?.remove();
  card.querySelector(".told").textContent = "";
  for (const unit of card.querySelectorAll(".unit")) unit.style.background = "";
  on = null;
}

function choose(word) {
  if (word === on) return;
  clear();
  on = word;
  word.classList.add("on");
  const card = word.closest(".card"), step = word.closest("li").dataset.step;
  const looks = data.looks[card.dataset.id];
  const weights = looks.weights[layers.value][step][[...word.parentNode.children].indexOf(word)];
  const shares = [];
  const most = Math.max(50, ...weights.slice(0, -2)); // what is under half a percent stays faint
  let place = 0;
  for (const input of data.inputs[step]) {
    const units = looks.units[input] || [];
    const own = weights.slice(place, place + units.length);
    place += units.length;
    if (looks.boxes[input]) drawBoxes(card, looks.boxes[input], own, most);
    else shadeWords(card, input, own, most);
    shares.push([input, own.reduce((a, b) => a + b, 0), top(units, own)]);
  }
  shares.push(["marks ([CLS], [SEP])", weights[place], ""], ["itself and the words before", weights[place + 1], ""]);
  tell(card, word.textContent.trim(), shares);
}

function top(units, weights) {
  const order = weights.map((weight, i) => [weight, units[i].trim()]).sort((a, b) => b[0] - a[0]).slice(0, 2);
  return order.filter(([weight]) => weight >= 100).map(([weight, unit]) => `${unit}: ${percent(weight)}`).join("; ");
}

function tell(card, word, shares) {
  const told = card.querySelector(".told");
  const bold = document.createElement("b");
  bold.textContent = word;
  const said = shares.filter(([, share]) => share > 0).map(([name, share, best]) => `${name} ${percent(share)}` + (best ? ` (${best})` : ""));
  told.replaceChildren(bold, " looks at " + said.join(", "));
}

function drawBoxes(card, boxes, weights, most) {
  const frame = card.querySelector(".frame");
  if (!frame) return;
  const drawing = svg("svg", { viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": "true" });
  boxes.forEach(([x0, y0, x1, y1], i) => {
    const strength = weights[i] / most;
    if (strength < 0.03) return;
    drawing.append(svg("rect", { x: x0, y: y0, width: Math.max(0, x1 - x0), height: Math.max(0, y1 - y0), style: boxes.length > 20 ? "stroke-width: 1" : "", "stroke-opacity": strength.toFixed(2), "fill-opacity": (0.28 * strength * (1 - 0.8 * (x1 - x0) * (y1 - y0))).toFixed(2) }));
  });
  frame.append(drawing);
}

function shadeWords(card, input, weights, most) {
  const line = [...card.querySelectorAll(".read")].find((each) => each.dataset.input === input);
  line?.querySelectorAll(".unit").forEach((unit, i) => {
    unit.style.background = `rgb(var(--mark-rgb) / ${(0.6 * weights[i] / most).toFixed(2)})`;
  });
}

// One stop of the Tab key a card; arrows go from word to word and from question to question.
for (const card of cards) {
  const words = [...card.querySelectorAll(".word")];
  words.forEach((word, i) => { word.tabIndex = i ? -1 : 0; word.setAttribute("role", "button"); });
}
const gallery = document.getElementById("cards");
const wordOf = (event) => (event.target instanceof Element ? event.target.closest(".word") : null);
gallery.addEventListener("pointerover", (event) => { const word = wordOf(event); if (word) choose(word); });
gallery.addEventListener("click", (event) => { const word = wordOf(event); if (word) choose(word); });
gallery.addEventListener("focusin", (event) => { const word = wordOf(event); if (word) choose(word); });
gallery.addEventListener("keydown", (event) => {
  const word = wordOf(event);
  if (!word) return;
  if (event.key === "Escape") return clear();
  const card = word.closest(".card"), words = [...card.querySelectorAll(".word")];
  const lines = [...card.querySelectorAll(".wrote li")].filter((line) => line.querySelector(".word"));
  const line = lines.indexOf(word.closest("li")), place = [...word.parentNode.children].indexOf(word);
  const beside = (step) => { const next = lines[line + step]?.querySelectorAll(".word"); return next && next[Math.min(place, next.length - 1)]; };
  const to = { ArrowRight: () => words[words.indexOf(word) + 1], ArrowLeft: () => words[words.indexOf(word) - 1], ArrowDown: () => beside(1), ArrowUp: () => beside(-1),
    Home: () => word.parentNode.firstElementChild, End: () => word.parentNode.lastElementChild }[event.key];
  if (!to) return;
  event.preventDefault();
  const next = to();
  if (!next) return;
  word.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});

// --- finding and ordering
const find = document.getElementById("find"), metric = document.getElementById("metric"), order = document.getElementById("order");
document.getElementById("choose").hidden = false;
document.getElementById("choose").addEventListener("submit", (event) => event.preventDefault());
const texts = new Map(cards.map((card) => [card, card.querySelector(".say").textContent.toLowerCase()]));

function filter() {
  const wanted = find.value.trim().toLowerCase();
  for (const card of cards) card.hidden = wanted !== "" && !texts.get(card).includes(wanted);
  const left = cards.filter((card) => !card.hidden).length;
  document.getElementById("count").textContent = wanted ? `${left} of ${cards.length}` : "";
}

function score() {
  const name = metric.value, binary = "binary" in (metric.selectedOptions[0]?.dataset || {});
  for (const card of cards) {
    for (const line of card.querySelectorAll(".wrote li")) {
      const value = data.scores[card.dataset.id][line.dataset.step][name], shown = line.querySelector(".score");
      shown.textContent = value === undefined ? "" : binary ? (value ? `${name} \u2713` : `${name} \u2717`) : value.toFixed(1);
      shown.classList.toggle("no", binary && value === 0);
    }
  }
  sort();
}

function sort() {
  const mean = (card) => {
    const values = Object.values(data.scores[card.dataset.id]).map((each) => each[metric.value]).filter((value) => value !== undefined);
    return values.length ? values.reduce((a, b) => a + b, 0) / values.length : 0;
  };
  const sign = { low: 1, high: -1 }[order.value];
  gallery.append(...(sign ? cards.map((card) => [mean(card), card]).sort((a, b) => sign * (a[0] - b[0])).map(([, card]) => card) : cards));
}

find.addEventListener("input", filter);
metric?.addEventListener("change", score);
order?.addEventListener("change", sort);
filter();
if (metric) score();
