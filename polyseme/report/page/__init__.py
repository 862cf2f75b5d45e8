"""The report page: its content, its SVG charts and its HTML."""
