"""What goes through graphs: shapes, parts of programs."""
