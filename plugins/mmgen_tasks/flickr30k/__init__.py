"""The task Flickr30K Entities: which box each phrase of a caption refers to."""
