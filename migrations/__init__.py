"""Alembic's scripts; they travel in the package as rm_service.migrations."""
