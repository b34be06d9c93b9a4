"""What networks on the Hugging Face Hub weigh, before a run downloads them."""

from __future__ import annotations

from ..files import is_downloaded


def describe_model(name: str) -> str:
    """The size, revision and licence of a network on the hub; "" if it is a folder, or downloaded already."""
    from huggingface_hub import HfApi

    if any(is_downloaded(name, file) for file in ("config.json", "model.safetensors")):
        return ""
    line = f"{name}: the network, from huggingface.co"
    try:
        info = HfApi().model_info(name, files_metadata=True, timeout=10)
    except Exception as error:  # the hub's client and the network raise errors of many kinds
        return f"{line}, which cannot be asked now ({type(error).__name__})"
    size = sum(file.size or 0 for file in info.siblings or () if file.rfilename == "model.safetensors")
    return f"{line}, revision {info.sha}: {size / 1e6:,.0f} MB, licence {getattr(info.card_data, 'license', None)}"
