"""Providers of what an external resource manager (YARN, Kubernetes, ...) says that it has and that is used.

A provider is a plug-in: it knows the interface in this package and `rm_service.domain`, nothing else.
"""
