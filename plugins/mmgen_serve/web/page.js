// The page of `mmgen serve`: pictures in, texts out, and where each word looked. It talks to this service only.
"use strict";
const $ = (id) => document.getElementById(id);
const state = { model: null, pictures: [], attention: true };

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function status(text, bad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

async function call(path, options = {}, tries = 5) {
  const token = $("token").value;
  const headers = token ? { ...options.headers, Authorization: `Bearer ${token}` } : options.headers;
  const response = await fetch(path, { ...options, headers });
  if (response.status === 503 && tries > 1) {  // the queue is full
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(response.headers.get("Retry-After") || 1)));
    return call(path, options, tries - 1);
  }
  const body = await response.json().catch(() => ({ error: { message: response.statusText } }));
  if (response.status === 401) $("token-label").hidden = false;
  if (!response.ok) throw Object.assign(new Error(body.error.message), { status: response.status });
  return body;
}

async function begin() {
  try {
    state.model = (await call("v1/models")).data[0];
  } catch (error) {
    $("about").textContent = "enter the token of the service";
    status(error.message, true);
    return;
  }
  const { id, mmgen } = state.model;
  const inputs = Object.entries(mmgen.inputs);
  document.title = $("model").textContent = id;
  $("about").textContent = `reads ${inputs.map(([name]) => name).join(" and ") || "nothing"}; gives ${mmgen.gives}`;
  $("limits").textContent = mmgen.remark;
  const takesPictures = inputs.some(([, kind]) => kind === "picture");
  $("drop").hidden = $("camera-row").hidden = !takesPictures;
  $("camera-row").hidden ||= !(navigator.mediaDevices && navigator.mediaDevices.getUserMedia);
  $("decoding").hidden = !mmgen.decoding;
  const sampling = mmgen.decoding && "do_sample" in mmgen.decoding;
  $("search").querySelector("[value=sample]").disabled = !sampling;
  $("search").querySelector("[value=beams]").disabled = !(mmgen.decoding && "num_beams" in mmgen.decoding);
  $("texts").replaceChildren(...inputs.filter(([, kind]) => kind !== "picture").map(([name, kind]) => {
    const label = element("label", name, "text");
    const field = element(kind === "file" ? "input" : "textarea");
    field.name = name;
    if (kind === "file") field.type = "file";
    else field.rows = 2;
    label.append(field);
    return label;
  }));
  status("");
}

function decoding() {
  const n = Math.max(1, Math.min(20, Number($("n").value) || 1));
  const search = $("search").value;
  if (!state.model.mmgen.decoding) return {};
  if (search === "greedy") return { n: 1 };
  if (search === "beams") return { n, decoding: { num_beams: Math.max(4, n) } };
  if (search !== "sample") return { n };
  const request = { n, decoding: { do_sample: true, temperature: Number($("temperature").value) || 1 } };
  if ("num_beams" in state.model.mmgen.decoding) request.decoding.num_beams = 1;
  return $("seed").value === "" ? request : { ...request, seed: Number($("seed").value) };
}

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

async function send(picture) {
  const inputs = {};
  for (const area of $("texts").querySelectorAll("textarea")) if (area.value.trim()) inputs[area.name] = area.value.trim();
  for (const field of $("texts").querySelectorAll("input")) if (field.files[0]) inputs[field.name] = await dataUrl(field.files[0]);
  if (picture) inputs.picture = await dataUrl(picture);
  const ask = () => call("v1/ask", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ inputs, ...decoding(), attention: state.attention }),
  });
  try {
    return await ask();
  } catch (error) {
    if (error.status !== 501) throw error;
    state.attention = false;  // this model cannot show where its words looked
    return ask();
  }
}

async function sendAll(event) {
  event.preventDefault();
  if (!state.model) return begin();
  const needsPicture = Object.values(state.model.mmgen.inputs).includes("picture");
  if (needsPicture && !state.pictures.length) return status("choose a picture first", true);
  $("send").disabled = true;
  status("sent");
  const pictures = needsPicture ? state.pictures : [null];
  const start = performance.now();
  let failed = 0;
  const cards = pictures.map(newCard);
  $("cards").prepend(...cards);
  await Promise.all(pictures.map(async (picture, index) => {
    const card = cards[index];
    try {
      show(card, await send(picture));
    } catch (error) {
      failed += 1;
      card.querySelector(".remark").textContent = error.message;
      card.querySelector(".remark").classList.add("bad");
    }
  }));
  const seconds = ((performance.now() - start) / 1000).toFixed(2);
  status(failed ? `${failed} of ${pictures.length} failed` : `answered in ${seconds} s`, failed > 0);
  $("send").disabled = false;
}

function newCard(picture) {
  const card = $("card").content.firstElementChild.cloneNode(true);
  if (picture) card.querySelector("img").src = URL.createObjectURL(picture);
  else card.querySelector(".picture").remove();
  card.querySelector(".name").textContent = picture ? picture.name : "";
  return card;
}

function show(card, answer) {
  const list = card.querySelector(".results");
  for (const [index, text] of (answer.texts || []).entries()) {
    const item = element("li");
    const words = text.attention ? text.attention.words : [text.text];
    words.forEach((word, place) => {
      if (!text.attention) return item.append(word);
      const button = element("button", word.trim(), "word");
      button.type = "button";
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => look(card, button, text.attention, place));
      button.addEventListener("keydown", (event) => move(event, button));
      item.append(word.startsWith(" ") || place ? " " : "", button);
    });
    item.append(element("span", text.score.toFixed(2), "score"));
    list.append(item);
    card.querySelector(".hint").hidden = !(index === 0 && text.attention) && card.querySelector(".hint").hidden;
  }
  if (!answer.texts) predicted(card, list, answer);
  card.querySelector(".remark").textContent = (answer.remarks || []).filter((remark) => remark !== state.model.mmgen.remark).join("; ");
}

function predicted(card, list, { value, score, choices, kind }) {
  const named = choices ? choices.map((text, place) => [text, value.probabilities[place]])
    : value && value.probabilities ? Object.entries(value.probabilities) : [];
  for (const [name, share] of named.sort((a, b) => b[1] - a[1]).slice(0, 5)) {
    const item = element("li", `${name} `);
    const meter = element("meter");
    meter.value = share;
    item.append(meter, element("span", `${(100 * share).toFixed(1)} %`, "score"));
    list.append(item);
  }
  const boxes = kind === "region" ? [value.box] : kind === "boxes" ? value.slice(0, 1) : [];
  draw(card, boxes.map((box) => [box, 0.5]));
  if (!named.length) list.append(element("li", boxes.length ? `${kind}, ${(100 * score).toFixed(1)} %` : JSON.stringify(value)));
}

function move(event, button) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const words = [...button.closest(".results").querySelectorAll(".word")];
  const next = words[words.indexOf(button) + step];
  if (next) { next.focus(); next.click(); }
  event.preventDefault();
}

function look(card, button, attention, place) {
  for (const other of card.querySelectorAll(".word")) other.setAttribute("aria-pressed", String(other === button));
  const row = attention.weights[place];
  const seen = card.querySelector(".seen");
  seen.replaceChildren();
  let column = 0;
  const boxes = [];
  for (const [name, units] of Object.entries(attention.inputs)) {
    const shares = row.slice(column, column + units.names.length);
    const highest = Math.max(...shares, 1e-9);
    column += units.names.length;
    if (units.boxes.length) units.boxes.forEach((box, index) => boxes.push([box, shares[index] / highest]));
    else {
      seen.append(element("b", name));
      units.names.forEach((word, index) => {
        const span = element("span", word.trim());
        span.style.background = `rgb(255 157 0 / ${(0.75 * shares[index] / highest).toFixed(2)})`;
        seen.append(span);
      });
    }
  }
  draw(card, boxes.sort((a, b) => a[1] - b[1]).slice(-5));
}

function draw(card, boxes) {
  const svg = card.querySelector("svg");
  if (!svg) return;
  svg.replaceChildren(...boxes.map(([[x0, y0, x1, y1], share]) => {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 })) rect.setAttribute(name, value);
    rect.style.fillOpacity = 0.35 * share;
    rect.style.strokeOpacity = 0.15 + 0.85 * share;
    return rect;
  }));
}

function choose(files) {
  state.pictures = [...files].filter((file) => !file.type || file.type.startsWith("image/"));  // HEIC has none
  const count = state.pictures.length;
  status(count ? `${count} picture${count > 1 ? "s" : ""} chosen` : "no picture among these files", !count);
  if (count && state.model && !$("texts").querySelector("textarea, input")) $("form").requestSubmit();
}

async function camera() {
  const video = $("video");
  if (video.hidden) {
    try {
      video.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    } catch (error) {
      return status(`the camera cannot be used: ${error.message}`, true);
    }
    video.hidden = false;
    await video.play();
    $("camera").textContent = "Use this picture";
    return;
  }
  const canvas = element("canvas");
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d").drawImage(video, 0, 0);
  for (const track of video.srcObject.getTracks()) track.stop();
  video.hidden = true;
  $("camera").textContent = "Take a picture";
  canvas.toBlob((blob) => choose([new File([blob], "camera.jpg", { type: "image/jpeg" })]), "image/jpeg", 0.92);
}

$("form").addEventListener("submit", sendAll);
$("files").addEventListener("change", () => choose($("files").files));
$("drop").addEventListener("click", () => $("files").click());
$("drop").addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); $("files").click(); } });
$("camera").addEventListener("click", camera);
$("search").addEventListener("change", () => { $("temperature-label").hidden = $("seed-label").hidden = $("search").value !== "sample"; });
for (const [name, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
  document.addEventListener(name, (event) => { event.preventDefault(); $("drop").classList.toggle("over", over); });
}
document.addEventListener("drop", (event) => choose(event.dataTransfer.files));
begin();
