"""VQA: questions about a picture, and what people answered."""
