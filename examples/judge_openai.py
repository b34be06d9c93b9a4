"""Rates the requests of `mmgen judge requests` with a model behind an OpenAI-shaped endpoint.

    python examples/judge_openai.py judge.requests.jsonl ratings.jsonl http://localhost:8000/v1 MODEL

The file of ratings is also the cache: what it has is not asked again. OPENAI_API_KEY is sent if it is set.
"""

import json
import os
import re
import sys
import urllib.request
from pathlib import Path

requests, ratings, endpoint, model = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
lines = [json.loads(line) for line in requests.read_text(encoding="utf-8").splitlines()]
pictures = {line["picture"]: line["url"] for line in lines if "url" in line}
known = {json.loads(line)["key"] for line in ratings.read_text().splitlines()} if ratings.exists() else set()
headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'none')}"}
with ratings.open("a", encoding="utf-8") as file:
    for line in (line for line in lines if "key" in line and line["key"] not in known):
        content = [{"type": "text", "text": line["prompt"]}]
        if line["picture"]:
            content.append({"type": "image_url", "image_url": {"url": pictures[line["picture"]]}})
        body = {"model": model, "temperature": 0, "messages": [{"role": "user", "content": content}]}
        call = urllib.request.Request(f"{endpoint}/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(call) as response:
            reply = json.load(response)["choices"][0]["message"]["content"]
        if rating := re.search(r"[1-5]", reply):
            file.write(
                json.dumps({"key": line["key"], "rating": int(rating[0]), "model": model, "reply": reply}) + "\n"
            )
            known.add(line["key"])
            file.flush()
