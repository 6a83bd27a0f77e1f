"""Ops for the neurons of other authors, besides the tree op: products of sigmoids, boxes, dense synapses."""
