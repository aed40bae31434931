"""The HTTP server that carries every façade: requests on threads, long streams on one event loop."""
