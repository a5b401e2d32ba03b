"""What is built on graphs for inference."""
