"""Private helpers without state: checks of arguments, files, progress, JSON, optional packages."""
