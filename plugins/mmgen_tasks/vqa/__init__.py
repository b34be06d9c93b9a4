"""The task VQA: questions about a picture, and the answers of people."""
