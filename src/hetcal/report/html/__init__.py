"""The report as one HTML page: Jinja2 templates, style and script; Python formats and scales."""
