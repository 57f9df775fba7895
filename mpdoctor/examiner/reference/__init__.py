"""One step as the model is and the same one in float32, in place: what its gradients and its layers' outputs lose."""
