"""Images, signals and volumes: what slides over the spatial dimensions of tensors (N, C, *sizes)."""
