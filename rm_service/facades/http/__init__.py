"""The native HTTP API and the server that carries every façade that speaks HTTP."""
