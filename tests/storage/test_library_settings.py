"""Settings of libraries in an export: those that fetch, open or run something else are refused; mmgen's own are not."""

import json

import pytest

from mmgen.errors import RunError
from mmgen.storage.library_settings import check_library_settings

TIMM = {"model_type": "timm_backbone", "backbone": "resnet50.a1_in1k", "use_pretrained_backbone": False}
HARMLESS = [
    {"model_type": "bert", "num_hidden_layers": 48, "vocab_size": 250_002, "auto_map": None, "_name_or_path": ""},
    {"model_type": "detr", "backbone_config": TIMM, "backbone": None, "depths": [3, 4, 6, 3]},
    {"size": {"shortest_edge": 800, "longest_edge": 1333}, "attn_implementation": "sdpa"},
]
HOSTILE = {
    "code": ({"auto_map": {"AutoModel": "evil--x.Model"}}, "'auto_map' is refused: a library that reads it runs code"),
    "nested code": ({"backbone_config": {"auto_map": {"a": "b"}}}, "'auto_map' is refused"),
    "a kernel": (
        {"attn_implementation": "evil/kernel"},
        "'attn_implementation' must be one of eager, sdpa, not 'evil/kernel'",
    ),
    "a kernel by part": ({"_attn_implementation": {"vision": "evil/kernel"}}, "'_attn_implementation' must be one of"),
    "quantised": ({"quantization_config": {"quant_method": "x"}}, "'quantization_config' is refused"),
    "a repository": (
        {"model_type": "detr", "backbone": "evil/x"},
        "'backbone' is refused: a library that reads it fetches a model ('evil/x')",
    ),
    "a repository of timm": (
        {"backbone_config": {"model_type": "timm_backbone", "backbone": "hf-hub:evil/x"}},
        "'backbone' is refused",
    ),
    "pretrained weights": ({"use_pretrained_backbone": True}, "'use_pretrained_backbone' is refused"),
    "a file": ({"vocab_file": "/etc/passwd"}, "'vocab_file' is refused: it names a file ('/etc/passwd')"),
    "other files": ({"fast_tokenizer_files": ["../tokenizer.1.json"]}, "'fast_tokenizer_files' is refused"),
    "layers": ({"encoder_layers": 10**9}, "'encoder_layers' must be at most 1000, not 1000000000"),
    "layers of stages": ({"depths": [1, 10**6]}, "'depths' must be at most 1000, not 1000000"),
    "widths": ({"d_model": 10**8}, "'d_model' must be at most 10000000, not 100000000"),
    "pixels": ({"size": {"height": 10**6}}, "'size.height' must be at most 10000, not 1000000"),
}


@pytest.mark.parametrize("settings", HARMLESS)
def test_what_mmgen_writes_is_read(tmp_path, settings):
    (tmp_path / "config.json").write_text(json.dumps(settings))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 10**30, "tokenizer_file": None}))
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"auto_map": 5, "backbone": 6}}}))
    check_library_settings(tmp_path)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_reads_something_else_is_refused(tmp_path, name):
    settings, message = HOSTILE[name]
    path = tmp_path / "image" / "detector" / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(settings))
    with pytest.raises(RunError) as error:
        check_library_settings(tmp_path)
    text = str(error.value)
    assert text.startswith(f"{path}: {message}") and "\n" not in text
    assert text.endswith("; mmgen writes no such setting, so do not trust this folder")


def test_adapters_are_refused(tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(RunError) as error:
        check_library_settings(tmp_path)
    assert str(error.value) == (
        f"{tmp_path}/adapter_config.json: adapters are not part of an export; delete the file if you trust the rest"
    )
