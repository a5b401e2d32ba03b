"""Elements named by indices and masks, read and written."""
