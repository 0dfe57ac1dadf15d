"""How well each orientation explains each frame: frames over a pixel list, products, likelihoods."""
