"""A matrix product whose tiles are sent while it runs, and its consumer."""
