const data = JSON.parse(document.getElementById("data").textContent);
const cards = [...document.querySelectorAll(".card")];
const svg = (name, attributes) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};
const TOTAL = 10000; // a word's total attention
const strength = (weight) => (weight < 50 ? 0 : Math.sqrt(weight / TOTAL)); // of a colour; the square root makes 5 % visible
const shade = (weight) => `rgb(var(--mark-rgb) / ${(0.6 * strength(weight)).toFixed(2)})`;
const percent = (share) => (share < 100 && share > 0 ? "<1" : Math.round(share / 100)) + "\u202f%";

// --- attention: the page highlights what a selected generated word attends to
let on = null; // the selected word
const around = (element) => element.closest(".card"); // with the picture, and the picture's examples
const layers = document.getElementById("layers");
layers?.addEventListener("change", () => { const word = on; clear(); if (word) selectWord(word); });

function clear() {
  if (!on) return;
  for (const drawing of around(on).querySelectorAll(".looks")) drawing.remove();
  around(on).querySelector(".attention").textContent = "";
  for (const element of on.closest(".say").querySelectorAll(".unit, .word")) { element.style.background = ""; element.classList.remove("on"); }
  on = null;
}

function selectWord(word) {
  if (word === on) return;
  clear();
  on = word;
  const card = word.closest(".say"), step = word.closest("li").dataset.step;
  word.classList.add("on");
  const looks = data.looks[card.dataset.id];
  const weights = looks.weights[layers.value][step][[...word.parentNode.children].indexOf(word)];
  const shares = [];
  let place = 0;
  for (const input of data.inputs[step]) {
    const units = looks.units[input] || [];
    const inputWeights = weights.slice(place, place + units.length);
    place += units.length;
    if (looks.boxes[input]) drawBoxes(card, looks, input, inputWeights);
    else unitsOf(card, input).forEach((unit, i) => { unit.style.background = shade(inputWeights[i]); });
    shares.push([input, inputWeights.reduce((a, b) => a + b, 0), top(units, inputWeights)]);
  }
  shares.push(["special tokens ([CLS], [SEP])", weights[place], ""], ["itself and the words before it", weights[place + 1], ""]);
  describeWord(card, word.textContent.trim(), shares);
}

const unitsOf = (card, input) => [...card.querySelectorAll(".read")].find((line) => line.dataset.input === input)?.querySelectorAll(".unit") || [];

function top(units, weights) {
  const order = weights.map((weight, i) => [weight, units[i].trim()]).sort((a, b) => b[0] - a[0]).slice(0, 2);
  return order.filter(([weight]) => weight >= 100).map(([weight, unit]) => `${unit}: ${percent(weight)}`).join("; ");
}

function describeWord(card, word, shares) {
  const parts = shares.filter(([, share]) => share > 0).map(([name, share, best]) => `${name} ${percent(share)}` + (best ? ` (${best})` : ""));
  const bold = document.createElement("b");
  bold.textContent = word;
  around(card).querySelector(".attention").replaceChildren(bold, " attends to " + parts.join(", "));
}

function drawBoxes(card, looks, input, weights) {
  const shots = [...around(card).querySelectorAll(".shot")];
  const drawings = shots.map(() => svg("svg", { class: "looks", viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": "true" }));
  looks.boxes[input].forEach(([x0, y0, x1, y1], i) => {
    const strong = strength(weights[i]);
    if (!strong) return;
    drawings[looks.pictures[input][i] ?? 0]?.append(svg("rect", { x: x0, y: y0, width: Math.max(0, x1 - x0), height: Math.max(0, y1 - y0), style: weights.length > 20 ? "stroke-width: 1" : "", "stroke-opacity": strong.toFixed(2), "fill-opacity": (0.28 * strong * (1 - 0.8 * (x1 - x0) * (y1 - y0))).toFixed(2) }));
  });
  shots.forEach((shot, i) => shot.append(drawings[i]));
}

for (const word of document.querySelectorAll(".word")) { word.tabIndex = 0; word.setAttribute("role", "button"); }
const gallery = document.getElementById("cards");
const wordOf = (event) => (event.target instanceof Element ? event.target.closest(".word") : null);
for (const kind of ["pointerover", "click", "focusin"]) gallery.addEventListener(kind, (event) => { const word = wordOf(event); if (word) selectWord(word); });
gallery.addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });

// --- searching, sorting, and the number of visible cards
const at = (id) => document.getElementById(id);
const find = at("find"), metric = at("metric"), order = at("order"), dataset = at("gallery"), AT_ONCE = Number(gallery.dataset.atOnce);
at("choose").hidden = false;
at("choose").addEventListener("submit", (event) => event.preventDefault());
const texts = new Map(cards.map((card) => [card, card.querySelector(".examples").textContent.toLowerCase()]));
const ofGallery = (card) => !dataset || card.dataset.gallery === dataset.value;
const isBinary = (values) => values.every((value) => value === 0 || value === 100); // right or wrong
let ordered = cards, most = AT_ONCE, metrics = {};

function show(count = AT_ONCE) {
  most = count;
  const query = find.value.trim(), all = ordered.filter(ofGallery), matches = all.filter((card) => texts.get(card).includes(query.toLowerCase()));
  const shown = matches.slice(0, most), left = matches.length - shown.length;
  for (const card of cards) { card.hidden = !shown.includes(card); card.classList.remove("later"); }
  at("count").textContent = query ? `${matches.length} of ${all.length}` : left ? `${shown.length} of ${all.length} shown` : "";
  at("none").hidden = matches.length > 0;
  at("none").textContent = matches.length ? "" : `No example contains \u201c${query}\u201d in its id or texts.`;
  at("more").parentNode.hidden = !left;
  at("more").textContent = `Show ${Math.min(AT_ONCE, left)} more of ${left}`;
  return matches;
}

function reveal() { // a link may point to a hidden card
  const card = gallery.querySelector(":target")?.closest(".card");
  if (!card?.hidden) return;
  find.value = "";
  if (dataset && !ofGallery(card)) { dataset.value = card.dataset.gallery; choose(); }
  show(Math.max(AT_ONCE, show().indexOf(card) + 1));
  card.scrollIntoView();
}

function choose() { // the metrics of the selected data set, right or wrong ones first, and the choice of attention layers
  clear();
  if (layers) layers.parentNode.hidden = !cards.some((card) => ofGallery(card) && card.querySelector(".attention"));
  metrics = {};
  for (const step of data.steps[dataset?.value ?? 0]) for (const [name, values] of Object.entries(data.scores[step])) (metrics[name] ??= []).push(...Object.values(values));
  const splits = (name) => isBinary(metrics[name]) && new Set(metrics[name]).size === 2;
  const names = Object.keys(metrics).filter((name) => metrics[name].length).sort((a, b) => splits(b) - splits(a));
  metric.replaceChildren(new Option("none", ""), ...names.map((name) => new Option(name, name)));
  metric.value = names[0] ?? "";
  for (const select of [metric, order]) select.parentNode.hidden = !names.length;
  score();
}

function score() {
  const name = metric.value, binary = isBinary(metrics[name] ?? []);
  for (const line of gallery.querySelectorAll(".wrote > li")) {
    const value = data.scores[line.dataset.step][name]?.[line.closest(".say").dataset.id], shown = line.querySelector(".score");
    const wrong = binary && (value === 0) !== data.lower.includes(name);
    shown.textContent = value === undefined ? "" : binary ? `${name} ${wrong ? "\u2717" : "\u2713"}` : value.toFixed(1);
    shown.classList.toggle("no", value !== undefined && wrong);
  }
  sort();
}

function sort() {
  const sign = { low: 1, high: -1 }[order.value];
  const rank = (card) => { // cards without a score come last
    const values = [...card.querySelectorAll(".say")].flatMap((part) => Object.values(data.scores).map((of) => of[metric.value]?.[part.dataset.id])).filter((value) => value !== undefined);
    return values.length ? sign * values.reduce((a, b) => a + b, 0) / values.length : Number.MAX_VALUE;
  };
  ordered = sign ? cards.map((card) => [rank(card), card]).sort((a, b) => a[0] - b[0]).map(([, card]) => card) : cards;
  gallery.append(...ordered);
  show();
}

at("more").addEventListener("click", () => {
  const first = show(most + AT_ONCE)[most - AT_ONCE];
  first.tabIndex = -1; // keyboard focus moves to the first new card
  first.focus({ preventScroll: true });
});
find.addEventListener("input", () => show());
dataset?.addEventListener("change", choose);
metric.addEventListener("change", score);
order.addEventListener("change", sort);
choose();
addEventListener("hashchange", reveal);
reveal();
