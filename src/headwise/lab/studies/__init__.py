"""A file a published experiment."""
