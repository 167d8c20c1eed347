"""The report as one HTML page: text and SVG written here, style and script beside it."""
