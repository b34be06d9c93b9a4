"""COCO's captions: texts to pretrain on, or to train captioning on."""
