"""What every service does with examples, and the id by which it finds a tracker run again."""

from mmgen_trackers.services import Service


class Notes(Service):
    """Keeps what it is asked to show."""

    def __init__(self):
        self.shown = []

    def text(self, tracker, name, text, update):
        self.shown.append((name, text, update))

    def pictures(self, tracker, name, pictures, update):
        self.shown.append((name, list(pictures), update))


def test_an_example_is_a_text_and_its_pictures_if_it_has_some():
    service = Notes()
    service.show(None, 7, [("a", "a red dog", []), ("b", "a cat", ["picture"])])
    assert service.shown == [
        ("examples/0", "a\n\na red dog", 7),
        ("examples/1", "b\n\na cat", 7),
        ("pictures/1", ["picture"], 7),
    ]


def test_a_tracker_run_is_found_again_by_its_name():
    assert Service().id_of(None, "vqg/first") == "vqg/first"
