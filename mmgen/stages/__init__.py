"""What a step goes through: train, write, score; and extract, which fills feature stores before."""
