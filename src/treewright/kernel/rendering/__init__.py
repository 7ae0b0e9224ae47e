"""Text and pictures for reports: Markdown, SVG, axes, numbers. Knows nothing of what it shows."""
