"""What the neurons of other authors need besides the tree op: products of sigmoids, boxes, dense synapses."""
