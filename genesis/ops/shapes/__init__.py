"""Form and place: views, joins, parts and turns."""
