"""What networks are made of: activations, normalisations, attention, embeddings, dropout, steps of optimizers."""
