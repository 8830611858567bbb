"""Random programs and all small static sizes, against NumPy with error bounds that go along with the values."""
