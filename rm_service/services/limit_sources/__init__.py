"""Where limits come from: our own table, and a configuration service that is asked by combined tag."""
