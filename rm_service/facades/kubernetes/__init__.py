"""Kubernetes: resource classes as objects of an API group, for kubectl and whoever speaks as it does."""
