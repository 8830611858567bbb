"""PyMC's models over graphc and over PyTensor: first log-densities, calls, samples."""
