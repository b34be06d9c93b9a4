"""Folders of further decodings are named after their options."""


def test_names_say_every_option():
    from mmgen.decoding import Decoding
    from mmgen.storage.decodings import name_of

    assert name_of(Decoding()) == "num_beams-1"
    assert name_of(Decoding(num_beams=4, length_penalty=0.8)) == "num_beams-4_length_penalty-0.8"
    assert name_of(Decoding(do_sample=True, top_k=5)) == "do_sample-true_top_k-5"
