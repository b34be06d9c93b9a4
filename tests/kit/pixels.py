"""A plugin whose embedder reads pixels."""

PIXELS = '''
    from typing import Literal

    import mmgen


    class Pixels(mmgen.EmbedderConfig):
        """Pixels of pictures, 4 x 4 of them, through one linear layer."""

        type: Literal["pixels"] = "pixels"
        takes = "picture"

        def build(self, backbone):
            import numpy as np
            import torch

            from mmgen.parts import Embedder, Picture, Reader
            from mmgen.tensors import Segment

            class PixelReader(Reader):
                def read(_, example):
                    rows = []
                    for value in example.shown(self.fields[0]):
                        if isinstance(value, Picture):
                            rows.append(np.asarray(value.load().resize((4, 4)), np.float32).ravel() / 255)
                        else:  # a key of the training data
                            rows.append(np.full(48, len(value) / 9, np.float32))
                    return torch.from_numpy(np.stack(rows))

                def collate(_, items):
                    pad = torch.nn.utils.rnn.pad_sequence(items, True)
                    return {"pixels": pad, "count": torch.tensor([len(item) for item in items])}

            class PixelEmbedder(Embedder):
                def __init__(self):
                    super().__init__()
                    self.reader, self.dense = PixelReader(), torch.nn.Linear(48, backbone.input_size)

                def forward(self, pixels, count):
                    mask = torch.arange(pixels.shape[1])[None] < count[:, None]
                    return Segment(self.dense(pixels), mask)

            return PixelEmbedder()


    @mmgen.hookimpl
    def register_embedders():
        return [Pixels]
'''
