const sheet = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children); // strings become text nodes, never HTML
  return element;
};
const WORDS = sheet.words; // criterion -> the question to the judge, its meaning, the ends of the scale
const CONTEXT = {
  "": "You see the question alone.", caption: "You see the caption of a picture.", picture: "You see the picture.", "caption,picture": "You see the picture and its caption.",
  "picture,answer": "You see the picture and an answer.", "caption,picture,answer": "You see the picture, its caption and an answer.",
};

const pages = sheet.rounds.flatMap((round, part) => sheet.items.map((item) => ({ round, part, item })));
const required = pages.flatMap((page, place) => page.item.questions.flatMap((question) => page.round.criteria.map((criterion) => ({ place, id: question.id, criterion }))));
// The picture column is as wide as its widest picture, so that the questions next to it do not move.
const widths = new Set(sheet.items.filter(({ shot }) => shot).map(({ shot: [, width, height] }) => `min(${2 * width}px, ${(width / height).toFixed(3)} * 72vh)`));
at("rate").style.setProperty("--widest", `max(0px, ${[...widths].join(", ") || "0px"})`);
const START = -1, END = pages.length;
const STORAGE_KEY = `${sheet.format} ${sheet.sheet}`;
let state = { judge: "", place: START, ratings: {} };

// --- saved ratings
const rating = ({ id, criterion }) => state.ratings[id]?.[criterion];
const missing = () => required.filter((item) => rating(item) === undefined);

function restore(saved) { // ratings from a file or from the browser: only the valid ones
  state.judge = String(saved.judge || "").slice(0, 80);
  state.ratings = {};
  for (const { id, criterion } of required) {
    const value = saved.ratings?.[id]?.[criterion];
    if (Number.isInteger(value) && value >= 1 && value <= 5) rate(id, criterion, value);
  }
}

function rate(id, criterion, value) { (state.ratings[id] ||= {})[criterion] = value; }

function store() {
  try { localStorage.setItem(STORAGE_KEY, JSON.stringify(state)); }
  catch { trouble("This browser cannot save ratings for a page opened like this one: save to a file before you close the page."); }
}

function trouble(text) { at("trouble").textContent = text; at("trouble").hidden = !text; }

try {
  const saved = JSON.parse(localStorage.getItem(STORAGE_KEY) || "null");
  if (saved) { restore(saved); state.place = Math.max(START, Math.min(END, Number(saved.place) || 0)); }
} catch { trouble("The ratings saved in this browser cannot be read; please start over."); }

// --- pages
function go(place) {
  state.place = Math.max(START, Math.min(END, place));
  store();
  at("start").hidden = state.place !== START;
  at("end").hidden = state.place !== END;
  at("rate").hidden = at("bar").hidden = state.place === START || state.place === END;
  at("turn").hidden = state.place === START;
  at("next").hidden = state.place === END;
  if (state.place === START) showStart();
  else if (state.place === END) showEnd();
  else showPage(pages[state.place]);
  window.scrollTo(0, 0);
}

function showStart() {
  at("parts").replaceChildren(...sheet.rounds.map(({ criteria, shows }) => make("li", {}, `${criteria.map((criterion) => WORDS[criterion][1]).join(". ")}. ${CONTEXT[shows]}`)));
  at("judge").value = state.judge;
  at("reset").hidden = !Object.keys(state.ratings).length;
  at("begin").textContent = Object.keys(state.ratings).length ? "Continue" : "Begin";
}

function showPage({ round, part, item }) {
  at("ask").textContent = round.criteria.length > 1 ? "Rate each question" : WORDS[round.criteria[0]][0];
  at("thing").replaceChildren();
  if (round.shows.includes("picture")) {
    const [src, width, height] = item.shot;
    at("thing").append(make("img", { class: "shot", src, width, height, style: `max-width: min(100%, ${2 * width}px)`, alt: "The picture that the questions are about" }));
  }
  if (round.shows.includes("caption")) at("thing").append(make("p", { class: "caption" }, item.caption));
  if (round.shows.includes("answer")) at("thing").append(make("p", { class: "caption" }, `Answer: ${item.answer}`));
  at("questions").replaceChildren(...item.questions.map((question) => showQuestion(question, round.criteria)));
  at("part").textContent = (sheet.rounds.length > 1 ? `part ${part + 1} of ${sheet.rounds.length}, ` : "") + `page ${(state.place % sheet.items.length) + 1} of ${sheet.items.length}`;
  at("rate").classList.toggle("pictured", round.shows.includes("picture"));
  count();
  mark();
  at("ask").focus({ preventScroll: true });
}

function showQuestion(question, criteria) {
  const text = make("p", { class: question.text ? "text" : "text none" }, question.text || "(nothing was written)");
  const box = make("div", { class: "question", "data-id": question.id }, text);
  for (const criterion of criteria) {
    const marks = make("div", { class: "marks" });
    for (let value = 1; value <= 5; value++) {
      const input = make("input", { type: "radio", name: `${question.id} ${criterion}`, value, "aria-label": { 1: `1, ${WORDS[criterion][2]}`, 5: `5, ${WORDS[criterion][3]}` }[value] || value });
      input.checked = rating({ id: question.id, criterion }) === value;
      marks.append(make("label", {}, input, String(value)));
    }
    const legend = make("legend", {}, criteria.length > 1 ? WORDS[criterion][1] : question.text || "nothing was written");
    const ends = make("p", { class: "ends", "aria-hidden": "true" }, make("span", {}, WORDS[criterion][2]), make("span", {}, WORDS[criterion][3]));
    box.append(make("fieldset", { class: criteria.length > 1 ? "scale" : "scale hush", "data-criterion": criterion }, legend, marks, ends));
  }
  return box;
}

function count() {
  const left = missing().length;
  at("left").textContent = left ? `${left} ratings left` : "all questions rated";
  at("progress").max = required.length;
  at("progress").value = required.length - left;
}

function showEnd() {
  const left = missing();
  at("done").textContent = left.length ? "Some ratings are missing" : "All questions are rated. Thank you!";
  at("missing").textContent = left.length ? `${left.length} of ${required.length} ratings are missing.` : "Save the file and send it to the person who gave you this page.";
  at("first-missing").hidden = !left.length;
  at("judge-end").value = state.judge;
  at("saved").textContent = "";
  at("done").focus({ preventScroll: true });
}

// --- rating
const scales = () => [...at("questions").querySelectorAll(".scale")];
const unrated = (scale) => !scale.querySelector(":checked");

function current() { // the scale with the focus, or else the first that is not rated
  return document.activeElement?.closest?.(".scale") || scales().find(unrated);
}

function mark() {
  const now = current();
  for (const scale of scales()) scale.classList.toggle("now", scale === now);
  for (const box of at("questions").children) box.classList.toggle("now", box.contains(now ?? null));
}

at("questions").addEventListener("change", (event) => {
  const scale = event.target.closest(".scale");
  rate(scale.closest(".question").dataset.id, scale.dataset.criterion, Number(event.target.value));
  store();
  count();
  mark();
});
at("questions").addEventListener("focusin", mark);

document.addEventListener("keydown", (event) => {
  if (at("rate").hidden || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key >= "1" && event.key <= "5" && event.key.length === 1) {
    const all = scales(), scale = current() || all[0];
    const input = scale.querySelector(`input[value="${event.key}"]`);
    event.preventDefault();
    input.checked = true;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    const later = all.slice(all.indexOf(scale) + 1);
    const next = later.find(unrated) || all.find(unrated);
    const to = next ? next.querySelector("input") : at("next");
    to.focus();
    (next?.closest(".question") ?? to).scrollIntoView({ block: "nearest" });
    mark();
  } else if (event.key === "Enter" && event.target.tagName !== "BUTTON" && !scales().some(unrated)) {
    event.preventDefault();
    go(state.place + 1);
  }
});

// --- buttons
at("back").addEventListener("click", () => go(state.place - 1));
at("next").addEventListener("click", () => go(state.place + 1));
at("begin").addEventListener("click", () => {
  const left = missing();
  go(left.length === required.length ? 0 : left.length ? left[0].place : END);
});
for (const [id, button] of [["judge", "begin"], ["judge-end", "save"]]) {
  at(id).addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); at(button).click(); } });
}
at("first-missing").addEventListener("click", () => go(missing()[0].place));
at("reset").addEventListener("click", () => {
  if (!confirm("Delete all ratings that are saved in this browser?")) return;
  state = { judge: state.judge, place: START, ratings: {} };
  go(START);
});
for (const id of ["judge", "judge-end"]) at(id).addEventListener("input", (event) => { state.judge = event.target.value; store(); });

at("load").addEventListener("change", async (event) => {
  try {
    const saved = JSON.parse(await event.target.files[0].text());
    if (saved.format !== sheet.format) throw new Error("it was not saved from a rating page");
    if (saved.sheet !== sheet.sheet) throw new Error("it was saved from a different sheet");
    restore(saved);
    trouble("");
    go(START);
  } catch (error) { trouble(`The file cannot be used: ${error.message}.`); }
});

at("save").addEventListener("click", () => {
  const judge = state.judge.trim();
  if (!judge) { at("saved").textContent = "Enter your name first, so that your ratings are not mixed up with another judge's."; at("judge-end").focus(); return; }
  const filled = { format: sheet.format, sheet: sheet.sheet, judge, written: new Date().toISOString(), ratings: state.ratings };
  const name = `${judge.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "judge"}-${sheet.sheet}.json`;
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([JSON.stringify(filled, null, 1) + "\n"], { type: "application/json" })) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  at("saved").textContent = `Saved as ${name} in your browser's download folder.`;
});

go(state.place);
