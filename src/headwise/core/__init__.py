"""What more than one room needs, once: specifications, errors, files, intervals, time, progress."""
