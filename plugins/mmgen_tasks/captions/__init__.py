"""COCO's captions: texts to pretrain from, or to learn to write."""
