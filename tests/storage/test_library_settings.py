"""Settings of libraries in an export: those that fetch, open or run something else are refused; mmgen's own are not."""

import json

import pytest
from kit.refusals import refusal

from mmgen.errors import RunError
from mmgen.storage.library_settings import check_library_settings

TIMM = {"model_type": "timm_backbone", "backbone": "resnet50.a1_in1k", "use_pretrained_backbone": False}
HARMLESS = [
    {"model_type": "bert", "num_hidden_layers": 48, "vocab_size": 250_002, "auto_map": None, "_name_or_path": ""},
    {"model_type": "detr", "backbone_config": TIMM, "backbone": None, "depths": [3, 4, 6, 3]},
    {"size": {"shortest_edge": 800, "longest_edge": 1333}, "attn_implementation": "sdpa"},
]
HOSTILE = [  # a setting that is refused, and where it is
    ("auto_map", {"auto_map": {"AutoModel": "evil--x.Model"}}),
    ("auto_map", {"backbone_config": {"auto_map": {"a": "b"}}}),
    ("attn_implementation", {"attn_implementation": "evil/kernel"}),
    ("_attn_implementation", {"_attn_implementation": {"vision": "evil/kernel"}}),
    ("quantization_config", {"quantization_config": {"quant_method": "x"}}),
    ("backbone", {"model_type": "detr", "backbone": "evil/x"}),
    ("backbone", {"backbone_config": {"model_type": "timm_backbone", "backbone": "hf-hub:evil/x"}}),
    ("use_pretrained_backbone", {"use_pretrained_backbone": True}),
    ("vocab_file", {"vocab_file": "/etc/passwd"}),
    ("fast_tokenizer_files", {"fast_tokenizer_files": ["../tokenizer.1.json"]}),
    ("encoder_layers", {"encoder_layers": 10**9}),
    ("depths", {"depths": [1, 10**6]}),
    ("d_model", {"d_model": 10**8}),
    ("size.height", {"size": {"height": 10**6}}),
]


@pytest.mark.parametrize("settings", HARMLESS)
def test_what_mmgen_writes_is_read(tmp_path, settings):
    (tmp_path / "config.json").write_text(json.dumps(settings))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 10**30, "tokenizer_file": None}))
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"auto_map": 5, "backbone": 6}}}))
    check_library_settings(tmp_path)


@pytest.mark.parametrize("name, settings", HOSTILE)
def test_what_reads_something_else_is_refused(tmp_path, name, settings):
    path = tmp_path / "image" / "detector" / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(settings))
    text = refusal(check_library_settings, tmp_path)
    assert text.startswith(f"{path}: '{name}' ")
    assert text.endswith("; mmgen writes no such setting, so do not trust this folder")


def test_adapters_are_refused(tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(RunError) as error:
        check_library_settings(tmp_path)
    assert str(error.value) == (
        f"{tmp_path}/adapter_config.json: adapters are not part of an export; delete the file if you trust the rest"
    )
