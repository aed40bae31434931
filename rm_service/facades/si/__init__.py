"""The Scheduler Interface: what resource managers say in its three dialects, and what they are answered."""
