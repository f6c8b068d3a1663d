"""The spectral engine: transforms of tiles, real mixing, and a model of what it costs."""
