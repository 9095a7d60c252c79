"""The job and pools files, as pydantic checks them. Importing this package imports pydantic: only `load` does."""
