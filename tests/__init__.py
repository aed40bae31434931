"""The tests mirror the rooms of the package; shared means stand here, at the top."""
