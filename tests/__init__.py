"""The tests, in folders of the rooms that they are about; what several of them use stands in `tests/support`."""
