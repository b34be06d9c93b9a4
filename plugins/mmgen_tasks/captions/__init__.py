"""The task COCO's captions."""
