"""The tasks that VisualBERT and VL-BERT are judged by: VQA, NLVR2, VCR, referring expressions and Flickr30K Entities, as
objectives, data sets in the published formats, and the official metrics."""
