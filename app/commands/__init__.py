"""The commands of `sharpwave`, a module for each group."""
