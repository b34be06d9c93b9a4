"""Settings: the base class of everything that a recipe sets; frozen, without unknown keys."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """Frozen, and closed: a key that does not exist is an error, never ignored. A `Path` in a recipe counts from the
    recipe's folder; see `mmgen.configs.RelativeTo` and `PathOrName`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )  # deferred: fifty schemas that nobody uses would take half of `mmgen --help`'s time
