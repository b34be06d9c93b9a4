"""`mmgen generate`: what the terminal shows, and a command without input."""

from kit import toys

from mmgen.cli.generate import _print_texts


def test_texts_have_scores_kinds_and_prompts(capsys):
    texts = [
        {"text": "what is it ?", "score": -0.5, "prompt": "form: what"},
        {"text": "is it red ?", "score": 12.25, "score_kind": "confidence"},
    ]
    _print_texts({"id": "a.jpg", "texts": texts}, "text")
    assert capsys.readouterr().out.splitlines() == [
        "a.jpg",
        "     -0.50  what is it ?  (form: what)",
        "     12.25 (confidence)  is it red ?",
    ]


def test_a_query_that_cannot_be_read_is_skipped(capsys):
    _print_texts({"id": "a.jpg", "error": "a.jpg: no such file"}, "text")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("a.jpg\n", "    skipped: a.jpg: no such file\n")


def test_a_command_without_input(tmp_path):
    done = toys.mmgen_here(tmp_path, "generate", "run")
    message = "error: no input; give a picture, a folder, a JSONL file, --input NAME=VALUE, or --caption\n"
    assert (done.returncode, done.stderr) == (1, message)
