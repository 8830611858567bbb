"""From a rewritten graph to a callable: schedule, lower, emit, compile, store, load, call."""
