"""The page of the service, in a real browser with a service that is made up."""

import mmgen_serve.app
import pytest
from kit.browsers import CHROMIUM, browse

SERVICE = """
const decoding_keys = { num_beams: 2, do_sample: false };
const kinds = { caption: "text", sound: "file" };
const model = { id: "m", mmgen: { inputs: kinds, gives: "text", decoding: decoding_keys } };
const answers = [
  [200, { data: [model] }],
  [503, { error: { message: "full" } }],
  [503, { error: { message: "full" } }],
  [501, { error: { message: "no attention" } }],
  [200, { texts: [{ text: "what is it?", score: -1 }] }],
  [400, { error: { message: "no text" } }],
];
const sent = [], attention = [], sounds = [];
window.fetch = async (path, options) => {
  const asked = JSON.parse(options.body || "{}");
  sent.push(options.body ? JSON.stringify(asked.decoding) : path);
  sounds.push(options.body ? atob(asked.inputs.sound.split(",")[1]) : "");
  attention.push(options.body ? String(asked.attention) : "");
  const [status, body] = answers.shift();
  return { ok: status === 200, status, json: async () => body, headers: new Headers({ "Retry-After": "0.01" }) };
};
"""
TRY = """
dataUrl = async (file) => `data:;base64,${btoa("RIFF")}`;  // reading takes real time, and the browser's is virtual
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
(async () => {
  await wait(50);
  $("search").value = "sample";
  const files = new DataTransfer();
  files.items.add(new File(["RIFF"], "a.wav"));
  document.querySelector("input[name=sound]").files = files.files;
  $("form").requestSubmit();
  await wait(300);
  const results = document.querySelector(".results").textContent;
  $("form").requestSubmit();
  await wait(100);
  const remark = document.querySelector(".remark.bad");
  const seen = { results, sent, attention, sounds, left: answers.length, refused: remark.textContent };
  document.body.append(Object.assign(document.createElement("pre"), { id: "seen", textContent: JSON.stringify(seen) }));
})();
"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_full_queue_is_tried_again_and_a_refusal_is_shown(tmp_path):
    page = (mmgen_serve.app.WEB / "page.html").read_text()
    script = (mmgen_serve.app.WEB / "page.js").read_text()
    seen = browse(page.replace('<script src="page.js" defer></script>', ""), SERVICE + script + TRY, tmp_path)
    assert seen["results"].startswith("what is it?") and seen["refused"] == "no text" and seen["left"] == 0
    sampling = '{"do_sample":true,"temperature":1,"num_beams":1}'
    assert seen["sent"] == ["v1/models", *[sampling] * 5]
    assert seen["sounds"] == ["", *["RIFF"] * 5]
    assert seen["attention"] == ["", "true", "true", "true", "false", "false"]  # the model shows none
