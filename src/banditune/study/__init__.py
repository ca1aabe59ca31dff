"""The verbs: ask tuners, call the engine, keep the record."""
