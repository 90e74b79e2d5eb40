"""Error against something, a line a setting: panels, their style, the lines' names."""
