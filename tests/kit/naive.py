"""The paper's own procedure, written out: re-encode X, y_<t, [MASK] for every t (bertgen, section 3.2).

It uses the encoder of transformers directly, and nothing of mmgen's layouts, masks, positions or caches.
"""

import torch


def distribution(backbone, prefix: torch.Tensor, written: list[int], prompt: list[int] = ()) -> torch.Tensor:
    """log P(y_t | X, y_<t): prefix (P, E) embedded X without padding, written y_<t -> (V,). A prompt before y sees X
    and itself, and y sees it."""
    encoder = backbone.model
    ids = torch.tensor([*prompt, *written, backbone.tokenizer.mask_token_id])
    states = torch.cat([prefix, encoder.get_input_embeddings()(ids)])
    inputs, before, length = len(prefix), len(prefix) + len(prompt), len(states)
    sees = torch.zeros(length, length)  # added to attention scores
    for row in range(length):
        end = inputs if row < inputs else before if row < before else row + 1
        sees[row, end:] = torch.finfo(torch.float32).min
    first = 0
    if "roberta" in encoder.config.model_type or encoder.config.model_type in ("camembert", "data2vec-text"):
        first = encoder.config.pad_token_id + 1
    encoder.set_attn_implementation("eager")
    out = encoder.base_model(
        inputs_embeds=states[None],
        attention_mask=sees[None, None],
        position_ids=torch.arange(first, first + length)[None],
    )
    encoder.set_attn_implementation("sdpa")
    return backbone.logits(out.last_hidden_state[0, -1]).log_softmax(-1)


def text_prefix(backbone, text: str) -> torch.Tensor:
    """[CLS] text, embedded."""
    tokens = [backbone.tokenizer.cls_token_id, *backbone.tokenizer(text, add_special_tokens=False)["input_ids"]]
    return backbone.model.get_input_embeddings()(torch.tensor(tokens))


def without_special(backbone, logp: torch.Tensor) -> torch.Tensor:
    """-inf for special tokens but the end, which no text has; the others stay as they are."""
    special = {*backbone.tokenizer.all_special_ids} - {backbone.tokenizer.sep_token_id}
    return logp.index_fill(0, torch.tensor([*special]), -torch.inf)


def greedy(backbone, prefix: torch.Tensor, limit: int) -> tuple[list[int], float]:
    """The likeliest token after the other, until the end token or the limit; with the mean log-probability."""
    written, total = [], 0.0
    while len(written) < limit and backbone.tokenizer.sep_token_id not in written:
        logp = without_special(backbone, distribution(backbone, prefix, written))
        written.append(int(logp.argmax()))
        total += logp.max().item()
    return written, total / len(written)
