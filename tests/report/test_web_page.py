"""Self-contained pages: texts of people are escaped, a name that the template lacks is an error."""

import pytest
from jinja2 import UndefinedError

from mmgen.report.web_page import render


@pytest.fixture
def package(tmp_path, monkeypatch):
    web = tmp_path / "mmgen_paged" / "web"
    web.mkdir(parents=True)
    (tmp_path / "mmgen_paged/__init__.py").write_text("")
    (web / "sheet.html").write_text("<style>{{ css }}</style><p>{{ text }} {{ share | percent }}</p>{{ js }}")
    (web / "sheet.css").write_text("p > b { }")
    (web / "sheet.js").write_text("if (1 < 2) {}")
    monkeypatch.syspath_prepend(tmp_path)
    return "mmgen_paged"


def test_texts_are_escaped_and_code_is_not(package):
    page = render(package, "sheet", {"text": "<b>&", "share": 0.4})
    assert page == "<style>p > b { }</style><p>&lt;b&gt;&amp; &lt;1\u202f%</p>if (1 < 2) {}"
    with pytest.raises(UndefinedError):
        render(package, "sheet", {"text": "x"})
